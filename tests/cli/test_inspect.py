"""`inspect --kernels`: every kernel of a plan in launch order, and why it is there."""
import gzip
import json

import harness
from harness import BAD_INPUT, ROOT, USAGE, CommandTest
from test_merge import ID, with_merging

PROFILES = ROOT / "tests" / "data" / "profiles"
RECORDED = PROFILES / "h100-f16-b1.jsonl.gz"


def named(*names, outputs):
    """The part of GoogLeNet that these nodes are."""
    graph = json.loads((ROOT / "models" / "googlenet.json").read_text())
    graph["nodes"] = [node for node in graph["nodes"] if node["name"] in names]
    graph["outputs"] = outputs
    graph.pop("weights", None)
    return graph


def work_of(name):
    """FLOPs of a model's convolutions for each output and input channel: two for each tap."""
    graph = json.loads((ROOT / "models" / f"{name}.json").read_text())
    convolutions = {node["name"]: node["attrs"] for node in graph["nodes"] if node["op"] == "Conv"}
    return {name: 2 * attrs["kernel_shape"][0] * attrs["kernel_shape"][1] for name, attrs in convolutions.items()}


class Layers(CommandTest):
    def layers(self, model, *args):
        out, _ = self.accepted(self.execute("inspect", model, "--format", "json", *args))
        told = json.loads(out)
        return told, {row["node"]: row for row in told["rows"]}

    def test_googlenet(self):
        model = str(ROOT / "models" / "googlenet.json")
        told, rows = self.layers(model, "--batch", "2", "--dtype", "f16")
        taps = work_of("googlenet")
        channels = {"conv1/7x7_s2": 3, "inception_3a/3x3": 96, "inception_3a/5x5": 16}
        for name, depth in channels.items():
            outputs = 1
            for extent in json.loads(rows[name]["shape"]):
                outputs *= extent
            self.assertEqual(rows[name]["flops"], outputs * taps[name] * depth)
        summary = told["summary"]
        self.assertEqual(told["batch"], 2)
        self.assertEqual(summary["nodes"], 143)
        self.assertEqual(summary["parameters"], 6998552)
        self.assertEqual(summary["parameters"], sum(row["parameters"] for row in rows.values()))
        self.assertAlmostEqual(summary["flops"], sum(row["flops"] for row in rows.values()))
        self.assertEqual(summary["blocks"], 1 + max(row["block"] for row in rows.values()))
        self.assertEqual((summary["width"], summary["width_convolutions"]), (4, 4))
        critical = [name for name, row in rows.items() if row["critical"]]
        self.assertAlmostEqual(summary["critical_flops"], sum(rows[name]["flops"] for name in critical))
        self.assertIn("inception_3a/3x3", critical)  # 173 MFLOPs a picture; the 5x5 beside it 20
        self.assertNotIn("inception_3a/5x5", critical)

    def test_bytes_follow_the_precision(self):
        model = str(ROOT / "models" / "squeezenet1_1.json")
        single, half = (self.layers(model, "--dtype", dtype)[0]["summary"] for dtype in ("f32", "f16"))
        self.assertEqual(single["bytes"], 2 * half["bytes"])
        self.assertEqual(single["flops"], half["flops"])

    def test_own_batch(self):
        model = self.file("four.json", {
            "schema": "convsched.graph/1", "name": "four", "inputs": [{"name": "x", "shape": [4, 3, 5, 5]}],
            "nodes": [{"name": "say \"a\\b\"", "op": "Relu", "inputs": ["x"]}], "outputs": ["say \"a\\b\""]})
        told, rows = self.layers(model)
        self.assertEqual(told["batch"], 4)
        self.assertEqual(rows['say "a\\b"']["flops"], 4 * 3 * 5 * 5)
        self.refused(self.execute("inspect", model, "--batch", "2"), BAD_INPUT, "batch")
        out, _ = self.accepted(self.execute("inspect", model, "--dot"))
        self.assertIn('label="say \\"a\\\\b\\"\\nRelu [4, 3, 5, 5]', out)

    def test_dot(self):
        model = str(ROOT / "models" / "googlenet.json")
        out, _ = self.accepted(self.execute("inspect", model, "--dot"))
        nodes = json.loads((ROOT / "models" / "googlenet.json").read_text())["nodes"]
        self.assertEqual(out.count("fillcolor="), len(nodes))
        self.assertEqual(out.count(" -> "), 1 + sum(len(node["inputs"]) for node in nodes))
        self.assertEqual(out.count("subgraph"), 9)  # the inceptions
        self.assertEqual(out.count("{"), out.count("}"))

    def test_wrong_use(self):
        model = str(ROOT / "models" / "googlenet.json")
        for args in (["--batch", "1,2"], ["--dot", "--format", "csv"], ["--dot", "--kernels"], ["--frozen"],
                     ["--dot", "--json", "-"]):
            with self.subTest(args):
                self.refused(self.execute("inspect", model, *args), USAGE, "")


class Kernels(CommandTest):
    cold = True

    def inspect(self, model, *args, device=f"sim:{RECORDED}"):
        return self.execute("inspect", model, "--kernels", "--device", device, *args)

    def told(self, model, *args, **more):
        out, _ = self.accepted(self.inspect(model, "--format", "json", *args, **more))
        told = json.loads(out)
        self.check_sums(told)
        return told

    def check_sums(self, told):
        """Totals are those of the list."""
        totals, kernels = told["totals"], [kernel for kernel in told["kernels"] if kernel["of"] > 0]
        self.assertEqual(told["schema"], "convsched.kernels/1")
        self.assertEqual(totals["kernels"], len(kernels))
        self.assertEqual(totals["launches"], sum(kernel["index"] == 0 for kernel in kernels))
        self.assertAlmostEqual(totals["us"], sum(kernel["us"] for kernel in kernels), places=4)
        for row in totals["classes"]:
            own = [kernel for kernel in kernels if kernel["class"] == row["class"]]
            self.assertEqual(row["kernels"], len(own))
            self.assertAlmostEqual(row["us"], sum(kernel["us"] for kernel in own), places=4)
        idle = [row for row in totals["classes"] if not row["computes"]]
        self.assertEqual(totals["not_computing"]["kernels"], sum(row["kernels"] for row in idle))
        self.assertAlmostEqual(totals["not_computing"]["us"], sum(row["us"] for row in idle), places=4)
        self.assertAlmostEqual(sum(row["share"] for row in totals["classes"]), 1, places=6)


class Recorded(Kernels):
    """A recorded H100."""

    def test_small_model(self):
        model = self.file("stem.json", named("conv1/7x7_s2", "conv1/relu_7x7_s2", "pool1/3x3_s2", "pool1/norm1",
                                             outputs=["pool1/norm1"]))
        told = self.told(model, "--dtype", "f16", "--policy", "sequential")
        self.assertEqual((told["source"], told["backend"], told["policy"], told["streams"]),
                         ("profile", "sim", "sequential", 1))
        self.assertEqual({kernel["early"] for kernel in told["kernels"]}, {None})  # no graph tells of edges
        rows = [(kernel["task"], kernel["nodes"], kernel["short"], kernel["grid"], kernel["block"], kernel["registers"],
                 kernel["class"], kernel["reason"]) for kernel in told["kernels"]]
        self.assertEqual(rows, [
            ("conv1/7x7_s2", ["conv1/7x7_s2", "conv1/relu_7x7_s2"], "sm80_xmma_fprop_implicit_gemm_inde…nel__5x_cudnn",
             [4, 98, 1], [128, 1, 1], 96, "compute", "computes conv1/7x7_s2 + bias + relu"),
            ("pool1/3x3_s2", ["pool1/3x3_s2"], "cs_pool", [392, 1, 1], [64, 1, 1], 80, "pool",
             "computes pool1/3x3_s2 (MaxPool)"),
            ("pool1/norm1", ["pool1/norm1"], "cs_lrn5", [392, 1, 1], [64, 1, 1], 31, "normalization",
             "computes pool1/norm1 (LRN)")])
        self.assertEqual(told["totals"]["not_computing"], {"kernels": 0, "us": 0.0, "share": 0.0})
        self.assertEqual(told["totals"]["launches_of_unknown_kernels"], 0)
        self.assertTrue(told["kernels"][0]["kernel"].startswith("sm80_xmma_fprop_implicit_gemm_indexed"))

    def test_copies_of_dense_outputs(self):
        """A slice's kernels are those of its candidate, the last of which copies."""
        told = self.told(ROOT / "models" / "googlenet.json", "--dtype", "f16", "--policy", "sequential")
        kernels = [kernel for kernel in told["kernels"] if kernel["task"] == "inception_5b/3x3"]
        self.assertEqual([(kernel["index"], kernel["of"], kernel["class"], kernel["reason"]) for kernel in kernels], [
            (0, 2, "compute", "kernel 1 of 2 of this candidate: computes inception_5b/3x3 + bias + relu"),
            (1, 2, "slice copy", "kernel 2 of 2 of this candidate: copies inception_5b/3x3's dense output into its "
                                 "slice of inception_5b/output")])
        self.assertIn(".dense:", kernels[0]["candidate"])
        for kernel in told["kernels"]:
            self.assertEqual(kernel["class"] == "slice copy", kernel["short"] == "cs_copy", kernel)
        self.assertEqual(told["totals"]["not_computing"]["kernels"],
                         sum(kernel["class"] == "slice copy" for kernel in told["kernels"]))

    def test_steps_of_a_candidate(self):
        """A convolution of Inception v3 with each of its candidates of several kernels pinned."""
        conv = {"name": "conv", "op": "Conv", "inputs": ["x"],
                "attrs": {"out_channels": 384, "kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "bias": True}}
        model = self.model(lambda graph: graph.update(
            inputs=[{"name": "x", "shape": ["N", 448, 8, 8], "dtype": "f32"}],
            nodes=[conv, {"name": "relu", "op": "Relu", "inputs": ["conv"]}], outputs=["relu"]))
        several = {}
        with gzip.open(RECORDED, "rt") as lines:
            for line in lines:
                record = json.loads(line)
                if record["op"].startswith("Conv f16 x=1x448x8x8/nhwc y=1x384x8x8/nhwc k=3x3") and "kernels" in record:
                    names = [kernel["name"] for kernel in record["kernels"]["list"]]
                    several.setdefault(record["kernels"]["candidate"], []).append(names)
        several = {candidate: lists for candidate, lists in several.items() if max(map(len, lists)) > 1}
        found = 0
        for candidate, lists in several.items():
            code, out, err = self.inspect(model, "--format", "json", "--dtype", "f16", "--policy", "sequential",
                                          "--algorithm", f"conv={candidate}")
            if code != 0:
                self.assertIn(candidate, err)
                continue
            told = json.loads(out)
            self.check_sums(told)
            own = [kernel for kernel in told["kernels"] if kernel["candidate"] == candidate]
            self.assertIn([kernel["kernel"] for kernel in own], lists)
            for kernel in own:
                for part, text in (("nchwToNhwc", "layout change"), ("winogradForwardFilter", "filter transform"),
                                   ("winogradForwardData", "input transform"), ("splitKreduce", "split-K reduction"),
                                   ("init_device_workspace", "prepares"), ("cs_elementwise", "adds what")):
                    if part in kernel["kernel"]:
                        self.assertIn(text, kernel["reason"])
                        found += 1
        self.assertGreater(found, 5)

    def test_without_recorded_kernels(self):
        with gzip.open(RECORDED, "rt") as lines:
            self.file("times.jsonl", "".join(line for line in lines if '"kernels"' not in line))
        model = ROOT / "models" / "googlenet.json"
        told = self.told(model, "--dtype", "f16", device=f"sim:{self.folder / 'times.jsonl'}")
        for kernel in told["kernels"]:
            self.assertEqual((kernel["kernel"], kernel["grid"], kernel["registers"], kernel["of"]), (None, None, None, 1))
            self.assertNotIn("kernel 1 of", kernel["reason"])
        self.assertEqual(told["totals"]["launches_of_unknown_kernels"], told["totals"]["launches"])
        out, _ = self.accepted(self.inspect(model, "--dtype", "f16", device=f"sim:{self.folder / 'times.jsonl'}"))
        self.assertIn("not known", out)
        launches = told["totals"]["launches"]
        self.assertIn(f"Of {launches} of {launches} launches the kernels are not known (they were not recorded)", out)

    def test_merged_plan(self):
        with gzip.open(RECORDED, "rt") as recorded:
            self.file("merging.jsonl", "".join(with_merging(recorded)))
        model, device = ROOT / "models" / "googlenet.json", f"sim:{self.folder / 'merging.jsonl'}"
        self.accepted(self.execute("plan", model, "--dtype", "f16", "--device", device, "--policy", "coselect",
                                   "--streams", 2, "--json", "plan.json"))
        plan = json.loads((self.folder / "plan.json").read_text())
        for chosen in (["--policy", "coselect", "--streams", 2], ["--plan", "plan.json"]):
            told = self.told(model, "--dtype", "f16", *chosen, device=device)
            merged = {kernel["task"]: kernel for kernel in told["kernels"] if kernel["merged"]}
            self.assertEqual({name: kernel["merged"] for name, kernel in merged.items()},
                             {task["name"]: task["merged"] for task in plan["tasks"] if "merged" in task})
            for name, kernel in merged.items():
                self.assertEqual((kernel["of"], kernel["kernel"], kernel["candidate"]), (0, None, ID))
                self.assertEqual(kernel["reason"],
                                 f"the same launch as {kernel['merged']} (merged): computes {name} + bias + relu")
                leader = next(one for one in told["kernels"] if one["task"] == kernel["merged"])
                self.assertIn("; merged with ", leader["reason"])
                self.assertIn(name, leader["reason"])
                self.assertIsNone(leader["grid"])
            self.assertEqual(told["totals"]["launches"], len(plan["tasks"]) - len(merged))

    def test_text(self):
        out, err = self.accepted(self.inspect(ROOT / "models" / "googlenet.json", "--dtype", "f16"))
        self.assertEqual(err, "")
        for text in ("googlenet  batch 1  f16  streams  on NVIDIA H100 80GB HBM3 (sim)", "what for",
                     "computes conv1/7x7_s2 + bias + relu", "Not computing (copies, layout changes): ",
                     "Times are planned ones"):
            self.assertIn(text, out)
        self.accepted(self.inspect(ROOT / "models" / "googlenet.json", "--dtype", "f16", "--json", "kernels.json"))
        self.assertEqual(json.loads((self.folder / "kernels.json").read_text()),
                         self.told(ROOT / "models" / "googlenet.json", "--dtype", "f16"))


class Cpu(Kernels):
    """One kernel a task."""

    def test_copies_and_what_stays_alone(self):
        def change(graph):
            conv = graph["nodes"][0]
            graph["nodes"] = [
                conv, graph["nodes"][1],
                {"name": "cat", "op": "Concat", "inputs": ["relu1", "x"], "attrs": {"axis": 1}},
                {"name": "bn", "op": "BatchNormalization", "inputs": ["cat"]},
                {"name": "act", "op": "Relu", "inputs": ["bn"]},
                {"name": "conv2", "op": "Conv", "inputs": ["act"], "attrs": dict(conv["attrs"], out_channels=7)},
                {"name": "sum", "op": "Add", "inputs": ["conv2", "cat"]},
            ]
            graph["outputs"] = ["sum"]
        told = self.told(self.model(change), "--policy", "sequential", device="cpu")
        self.assertEqual((told["source"], told["backend"]), ("none", "cpu"))
        rows = {kernel["task"]: kernel for kernel in told["kernels"]}
        self.assertEqual(len(rows), told["totals"]["kernels"])
        self.assertEqual(rows["conv1"]["reason"], "computes conv1 + bias + relu")
        self.assertEqual(rows["conv1"]["nodes"], ["conv1", "relu1"])
        self.assertEqual(rows["conv2"]["reason"], "computes conv2 + bias + residual cat")
        self.assertEqual(rows["conv2"]["nodes"], ["conv2", "sum"])
        self.assertEqual(rows["bn"]["reason"],
                         "computes bn (BatchNormalization) + relu that nothing could take over: cat is made by a "
                         "Concat, which takes over nothing; its relu comes before any weights behind it")
        self.assertEqual(rows["bn"]["nodes"], ["bn", "act"])
        self.assertTrue(rows["copy:x:cat"]["reason"].startswith("copies x into its slice of the concat cat"))
        self.assertEqual(rows["copy:x:cat"]["class"], "copy")
        for kernel in told["kernels"]:
            self.assertEqual(kernel["op"] == "Copy", kernel["class"] in ("copy", "layout change"))
            if kernel["class"] == "layout change":
                self.assertRegex(kernel["reason"], r"^layout \w+ -> \w+ of \w+ for ")
        self.assertEqual(told["totals"]["not_computing"]["kernels"],
                         sum(kernel["op"] == "Copy" for kernel in told["kernels"]))

    def test_use(self):
        model = self.model()
        self.refused(self.execute("inspect", model, "--device", "cpu"), USAGE, "--device goes with --kernels")
        self.refused(self.inspect(model, "--format", "csv", device="cpu"), USAGE, "text or json")
        self.refused(self.inspect(model, "--policy", "all", device="cpu"), USAGE, "a plan is of one policy")
        self.refused(self.inspect(model, "--batch", "1,2", device="cpu"), USAGE, "one --batch")
        self.refused(self.inspect(model, "--plan", "p.json", "--streams", 1, device="cpu"), USAGE, "p.json", "--streams")


if __name__ == "__main__":
    harness.main()
