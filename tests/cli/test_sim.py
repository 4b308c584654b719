"""`--device sim:FILE`: plans and predicted times of a GPU that is not there, from recorded profiles."""
import gzip
import json
import unittest

import harness
from harness import BAD_INPUT, FAILURE, ROOT, USAGE, CommandTest

PROFILES = ROOT / "tests" / "data" / "profiles"
POLICIES = ("sequential", "streams", "opara", "ios", "coselect")
CASES = [(model, dtype, batch) for model in ("googlenet", "inception_v3") for dtype in ("f16", "tf32")
         for batch in (1, 32)]


def profile(dtype="f16", batch=1):
    return PROFILES / f"h100-{dtype}-b{batch}.jsonl.gz"


class SimTest(CommandTest):
    cold = True

    def sim(self, command, *args, model="googlenet", dtype="f16", batch=1, file=None):
        return self.execute(command, ROOT / "models" / f"{model}.json", "--dtype", dtype, "--batch", batch,
                            "--device", f"sim:{file or profile(dtype, batch)}", *args)

    def tearDown(self):
        """Nothing is written to the cache."""
        self.assertFalse((self.folder / "cache").exists())


class Plan(SimTest):
    def plan(self, name, *args, **case):
        out, err = self.accepted(self.sim("plan", "--json", name, *args, **case))
        self.assertEqual((out, err), ("", ""))
        return (self.folder / name).read_bytes()

    @unittest.skipIf(harness.SHORT, "long under a sanitizer")
    def test_every_policy_of_every_recorded_case(self):
        for model, dtype, batch in CASES:
            predicted = {}
            for policy in POLICIES:
                with self.subTest(model=model, dtype=dtype, batch=batch, policy=policy):
                    plan = json.loads(self.plan("plan.json", "--policy", policy, model=model, dtype=dtype, batch=batch))
                    self.assertIn("cuda;name=NVIDIA H100", plan["device"])
                    self.assertEqual((plan["policy"], plan["precision"], plan["batch"]), (policy, dtype, batch))
                    ends = [task["end_us"] for task in plan["tasks"]]
                    self.assertAlmostEqual(plan["predicted_us"], max(ends), places=6)
                    predicted[policy] = plan["predicted_us"]
            for policy in POLICIES[1:]:
                self.assertLess(predicted[policy], predicted["sequential"])

    def test_streams_gain_less_where_kernels_fill_the_device(self):
        """Batch 32 fills the SMs: times alone would promise nearly twice the speed."""
        speedups = {}
        for batch in (1, 32):
            plans = [json.loads(self.plan("plan.json", "--policy", policy, batch=batch))
                     for policy in ("sequential", "streams")]
            speedups[batch] = plans[0]["predicted_us"] / plans[1]["predicted_us"]
        self.assertGreater(speedups[1], 1.5)
        self.assertLess(speedups[32], 1.25)

    def test_same_bytes(self):
        for policy in POLICIES:
            self.assertEqual(self.plan("a.json", "--policy", policy), self.plan("b.json", "--policy", policy))

    def test_table(self):
        out, _ = self.accepted(self.sim("plan"))
        self.assertIn("inception_5b/1x1", out)

    def test_pin_and_ban(self):
        chosen = {task["name"]: task["candidate"]["id"]
                  for task in json.loads(self.plan("plan.json"))["tasks"]}["conv2/3x3"]
        other = {task["name"]: task["candidate"]["id"]
                 for task in json.loads(self.plan("plan.json", "--ban", chosen))["tasks"]}["conv2/3x3"]
        self.assertNotEqual(other, chosen)
        self.refused(self.sim("plan", "--algorithm", "conv2/3x3=nothing"), BAD_INPUT, "conv2/3x3", "nothing")


class Run(SimTest):
    def record(self, *args, **case):
        self.accepted(self.sim("run", "--json", "run.json", *args, **case))
        return json.loads((self.folder / "run.json").read_text())

    @unittest.skipIf(harness.SHORT, "long under a sanitizer")
    def test_every_recorded_case(self):
        for model, dtype, batch in CASES:
            with self.subTest(model=model, dtype=dtype, batch=batch):
                record = self.record("--policy", "all", model=model, dtype=dtype, batch=batch)
                self.assertIs(record["predicted"], True)
                self.assertIsNone(record["verification"])
                self.assertIsNone(record["timings_s"]["verify"])
                self.assertEqual(record["device"]["backend"], "sim")
                policies = {policy["name"]: policy for policy in record["policies"]}
                self.assertEqual(set(policies), set(POLICIES))
                for policy in policies.values():
                    self.assertIs(policy["predicted"], True)
                    self.assertFalse({"latency_us", "latency_b2b_us", "verification"} & set(policy))
                    self.assertGreaterEqual(policy["predicted_us"], record["bounds"]["critical_path_us"])
                    self.assertAlmostEqual(
                        policy["speedup_vs_sequential"],
                        policies["sequential"]["predicted_us"] / policy["predicted_us"], places=6)

    def test_table_says_that_it_is_predicted(self):
        out, err = self.accepted(self.sim("run"))
        self.assertEqual(err, "")
        for text in ("on NVIDIA H100 80GB HBM3 (sim)", "predicted us", "nothing was run",
                     "Not verified: simulated device.", "Critical path", "no roofline"):
            self.assertIn(text, out)
        for text in ("median", "b2b", "First result", "float64"):
            self.assertNotIn(text, out)

    def test_plan_from_a_file(self):
        self.accepted(self.sim("plan", "--policy", "streams", "--json", "plan.json"))
        plan = json.loads((self.folder / "plan.json").read_text())
        record = self.record("--plan", "plan.json", "--policy", "streams")
        found = {policy["name"]: policy["predicted_us"] for policy in record["policies"]}["streams"]
        self.assertAlmostEqual(found, plan["predicted_us"], places=5)
        plan["device"] = plan["device"].replace("H100", "H200")
        self.file("other.json", plan)
        self.refused(self.sim("run", "--plan", "other.json"), BAD_INPUT, "another device", "H200", "H100")

    def test_what_needs_numbers_is_refused(self):
        for option in (["--input", "x.npy"], ["--output", "y.npy"], ["--dump", "conv1/7x7_s2"],
                       ["--weights", "w.safetensors"], ["--verify", "full"], ["--ablate"], ["--no-graph"],
                       ["--overlap"]):
            with self.subTest(option[0]):
                self.refused(self.sim("run", *option), USAGE, "simulated", option[0])
        self.refused(self.sim("run", "--refresh"), USAGE, "refresh")

    def test_a_search_is_refused(self):
        """By every command that plans, with what to do instead; and that works."""
        says = ("the device is simulated and runs nothing", "--search-seconds 3", "leave it out", "--search-steps", "profile --export")
        for command in ("run", "plan", "trace", "inspect --kernels", "report -o page.html"):
            with self.subTest(command):
                name, *more = command.split()
                self.refused(self.sim(name, *more, "--search-seconds", "3"), USAGE, f"--device sim:{profile()}", *says)
        self.refused(self.execute("report", ROOT / "models/googlenet.json", "--dtype", "f16", "--profile", profile(), "-o",
                                  "page.html", "--search-seconds", "3"), USAGE, f"--profile {profile()}", *says)
        self.assertFalse((self.folder / "page.html").exists())
        for instead in ((), ("--search-seconds", "0"), ("--search-steps", "5")):
            self.accepted(self.sim("run", "--policy", "coselect", *instead))


class Errors(SimTest):
    def test_profile(self):
        self.refused(self.sim("profile"), USAGE, f"--device sim:{profile()}", "measures nothing", "on the GPU itself",
                     "convsched profile MODEL.json --export FILE")
        self.refused(self.sim("profile", "--export", "x.jsonl"), USAGE, "measures nothing")

    def test_report(self):
        out, _ = self.accepted(self.sim("report", "--table", "workspace", "--node", "conv2/3x3"))
        self.assertIn("NVIDIA H100", out)

    def test_what_was_not_recorded(self):
        for command in ("plan", "run"):
            self.refused(self.sim(command, batch=8, file=profile()), BAD_INPUT, "conv1/7x7_s2", "not recorded",
                         "convsched profile", "--batch 8 --dtype f16 --export")
        self.refused(self.sim("plan", dtype="bf16", file=profile()), BAD_INPUT, "not recorded")
        self.refused(self.sim("plan", "--workspace-limit", "1G"), BAD_INPUT, "268435456",
                     "--workspace-limit 1073741824")

    def test_files(self):
        self.refused(self.sim("plan", file="nowhere.jsonl"), FAILURE, "nowhere.jsonl")
        self.refused(self.sim("plan", file=self.file("empty.jsonl", "")), BAD_INPUT, "empty.jsonl")
        self.refused(self.sim("plan", file=self.file("text.jsonl", "no profile\n")), BAD_INPUT, "text.jsonl",
                     "convsched.profile/1")
        self.refused(self.sim("plan", file=self.file("torn.jsonl.gz", profile().read_bytes()[:5000])), BAD_INPUT,
                     "torn.jsonl.gz")
        self.refused(self.sim("plan", file=self.folder), FAILURE, self.folder)

    def lines(self, wanted):
        with gzip.open(profile(), "rt") as file:
            return "".join(line for line in file if wanted(json.loads(line)))

    def test_profiles_that_lack_something(self):
        device = self.file("device.jsonl", self.lines(lambda line: line["op"] == "device"))
        self.refused(self.sim("plan", file=device), BAD_INPUT, "device.jsonl", "no operation")
        nameless = self.file("nameless.jsonl", self.lines(lambda line: line["op"].startswith("LRN")))
        self.refused(self.sim("plan", file=nameless), BAD_INPUT, "nameless.jsonl", "device_info")
        layout = self.file("nhwc.jsonl", self.lines(
            lambda line: "corun" not in line and "/nchw" not in line["op"].split(" y=")[0]))
        _, err = self.accepted(self.sim("plan", file=layout))
        self.assertEqual(err, "")

    def test_a_layout_that_lacks_an_operation_is_passed_over(self):
        some = self.file("some.jsonl", self.lines(
            lambda line: "corun" not in line and not (line["op"].startswith("LRN") and "/nchw" in line["op"])))
        out, err = self.accepted(self.sim("plan", file=some))
        self.assertIn("pool1/norm1", out)
        self.assertIn("layout nchw is passed over: pool1/norm1: not recorded", err)
        none = self.file("none.jsonl", self.lines(lambda line: "corun" not in line and not line["op"].startswith("LRN")))
        self.refused(self.sim("plan", file=none), BAD_INPUT, "pool1/norm1", "not recorded", "convsched profile")

    def test_what_an_older_program_recorded_counts(self):
        def without_version(text):
            line = json.loads(text)
            line.get("complete", {}).pop("candidates", None)
            return json.dumps(line, separators=(",", ":")) + "\n"

        with gzip.open(profile(), "rt") as file:
            older = self.file("older.jsonl", "".join(without_version(line) for line in file))
        plans = []
        for source in (older, profile()):
            out, err = self.accepted(self.sim("plan", "--json", "-", file=source))
            self.assertEqual(err, "")
            plans.append(out)
        self.assertEqual(plans[0], plans[1])

    def test_roofline_of_recorded_peaks(self):
        with gzip.open(profile(), "rt") as file:
            text = file.read()
        base = json.loads(text[:text.index("\n")])

        def peak(op, us):
            line = {"schema": base["schema"], "method": base["method"], "device": base["device"], "op": op,
                    "candidate": {"id": "a:b", "family": "a", "workspace_bytes": 0, "deterministic": True,
                                  "fused": True, "notes": 0, "threads": 0},
                    "measured": {"cold_us": us, "warm_us": us, "p10_us": us, "p90_us": us, "variation": 0.0,
                                 "samples": 5}}
            return json.dumps(line, separators=(",", ":")) + "\n"

        def roofline(us):
            more = (peak("Gemm f16 x=8192x4096/row y=8192x4096/row", us) +
                    peak("Copy f32 x=50x64x128x128/nchw y=50x64x128x128/nchw", us))
            file = self.file("peaks.jsonl", text + more)
            out, _ = self.accepted(self.sim("run", "--json", "-", file=file))
            return json.loads(out)["bounds"]["roofline_us"]

        once = roofline(1000.0)
        self.assertGreater(once, 0)
        self.assertAlmostEqual(roofline(2000.0) / once, 2, places=6)

    def test_device(self):
        for spec in ("sim", "sim:"):
            self.refused(self.execute("plan", self.model(), "--device", spec), USAGE, "sim:FILE")

    def test_doctor(self):
        out, _ = self.accepted(self.execute("doctor", "--json", "-"))
        self.assertIs(json.loads(out)["sim"]["works"], True)


if __name__ == "__main__":
    harness.main()
