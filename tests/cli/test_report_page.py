"""`convsched report -o FILE.html` and --figure: what the page holds, that its numbers are those of the other commands, that
holes are told. How it looks in a browser: test_report_browser.py."""
import csv
import gzip
import html.parser
import io
import itertools
import json
import pathlib
import re
import xml.etree.ElementTree

import unittest

import harness
from harness import BAD_INPUT, FAILURE, ROOT, USAGE, CommandTest

PROFILES = ROOT / "tests" / "data" / "profiles"
SECTIONS = ["summary", "timelines", "sm-use", "candidates", "resources", "workspace", "complementary", "memory", "graph",
            "peers", "environment"]
FIGURES = ["policies", "gantt", "sm-use", "scatter", "scatter-registers", "scatter-shared", "arena", "graph"]
POLICIES = ["sequential", "streams", "opara", "ios", "coselect"]
VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(html.parser.HTMLParser):
    """A page's elements; an end without its beginning, or the other way round, is an error."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.errors, self.ids, self.links, self.texts, self.missing = [], [], [], [], {}, []
        self.elements = []
        self.feed(text)
        self.close()
        self.errors += [f"<{tag}> is not closed" for tag, _ in self.open]

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.elements.append((tag, attrs))
        if "id" in attrs:
            self.ids.append(attrs["id"])
        self.links += [attrs[name] for name in ("href", "src", "srcset", "action") if name in attrs]
        self.links += ["#" + attrs[name] for name in ("aria-labelledby", "aria-controls") if name in attrs]
        if tag not in VOID:
            self.open.append((tag, attrs))

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open[-1][0] != tag:
            self.errors.append(f"</{tag}> where {self.open[-1:]} is open, line {self.getpos()[0]}")
        else:
            self.open.pop()

    def handle_data(self, data):
        for tag, attrs in self.open:
            if tag == "section":
                self.texts[attrs["id"]] = self.texts.get(attrs["id"], "") + data
        for tag, attrs in self.open:
            if "missing" in attrs.get("class", "").split():
                section = next(a["id"] for t, a in self.open if t == "section")
                self.missing.append((section, data))

    def missing_in(self, section):
        return "".join(data for of, data in self.missing if of == section)


class ReportTest(CommandTest):
    cold = True

    def report(self, *args, model="googlenet", dtype="tf32", file=None):
        return self.execute("report", ROOT / "models" / f"{model}.json", "--dtype", dtype, "--device",
                            f"sim:{file or PROFILES / f'h100-{dtype}-b1.jsonl.gz'}", *args)

    def page(self, *args, **how):
        out, err = self.accepted(self.report("-o", "page.html", *args, **how))
        self.assertEqual((out, err), ("", "convsched: wrote page.html\n"))
        return self.checked((self.folder / "page.html").read_text(encoding="utf-8"))

    def checked(self, text):
        page = Page(text)
        page.text = text
        self.assertEqual(page.errors, [])
        self.assertEqual(len(page.ids), len(set(page.ids)), "an id twice")
        self.assertEqual(re.findall(r"https?:|//[a-z0-9]+\.|@import|url\(", text), [], "something from elsewhere")
        for link in page.links:
            self.assertTrue(link == "data:," or link[0] == "#" and link[1:] in page.ids, link)
        self.assertEqual([attrs["id"] for tag, attrs in page.elements if tag == "section"], SECTIONS)
        return page

    def rows(self, figure, *args, **how):
        out, _ = self.accepted(self.report("--figure", figure, "--format", "csv", *args, **how))
        return list(csv.DictReader(io.StringIO(out)))

    def table(self, *args, dtype="tf32", **how):
        """Of the device's profile, as `report --table` tells it."""
        out, _ = self.accepted(self.report("--json", "-", *args, dtype=dtype, **how))
        return json.loads(out)["rows"]


class Whole(ReportTest):
    def test_a_page_of_all_policies(self):
        page = self.page()
        ids = set(page.ids)
        for policy in POLICIES:
            self.assertLessEqual({f"gantt-{policy}-simulated", f"sm-use-{policy}-simulated", f"arena-{policy}"}, ids)
        self.assertLessEqual({"policies-chart", "scatter-workspace", "scatter-registers", "scatter-shared", "graph-coselect"}, ids)
        self.assertIn("coselect is predicted to take", page.texts["summary"])
        self.assertIn("NVIDIA H100 80GB HBM3", page.texts["environment"])
        for section in ("summary", "timelines"):
            self.assertIn("the device is simulated", page.missing_in(section))
        self.assertIn("--peers FILE", page.missing_in("peers"))
        for section in ("sm-use", "candidates", "resources", "workspace", "complementary", "memory", "graph"):
            self.assertEqual(page.missing_in(section), "", section)

    def test_times_that_are_compared_have_one_unit(self):
        """Of some of these policies less than a millisecond, of others more."""
        how = ("--batch", "32", "--ban", "cudnn.graph*")
        file = PROFILES / "h100-f16-b32.jsonl.gz"
        us = [float(row["predicted_us"]) for row in self.rows("policies", *how, dtype="f16", file=file)]
        self.assertTrue(min(us) < 1000 < max(us), us)
        page = self.page(*how, dtype="f16", file=file)
        units = {}
        for chart, body in re.findall(r'<svg [^>]*id="((?:gantt|sm-use|arena|policies)[^"]*)"(.*?)</svg>', page.text, re.S):
            axis = re.search(r'<g class="axis x">(.*?)</g>', body, re.S)[1]
            ticks = re.findall(r">([0-9.]+) ([^< ]+)</text>", axis)
            units[chart] = {unit for _, unit in ticks}
            self.assertEqual([float(value) for value, _ in ticks], sorted({float(value) for value, _ in ticks}), chart)
        self.assertEqual(len(units), 3 * len(POLICIES) + 1)
        self.assertEqual(units, dict.fromkeys(units, {"ms"}))
        self.assertEqual(re.findall(r'class="value"[^>]*>[0-9.]+ (µs|s)', page.text), [])

    def test_size(self):
        """inception_v3 in f16 has the most candidates of the recorded ones."""
        page = self.page(model="inception_v3", dtype="f16")
        self.assertLess(len(page.text.encode()), 3_000_000)

    def test_the_same_twice(self):
        first = self.page("--policy", "streams").text
        self.assertEqual(self.page("--policy", "streams").text, first)

    def test_policies_that_were_asked_for(self):
        page = self.page("--policy", "opara,streams")
        shown = [attrs["data-name"] for tag, attrs in page.elements if attrs.get("class") == "panel"]
        self.assertEqual(shown[:3], ["sequential", "opara", "streams"])
        self.assertIn("graph-streams", page.ids)

    def test_every_point_has_its_row(self):
        page = self.page("--policy", "sequential")
        data = json.loads(re.search(r'id="candidate-data">(.*?)</script>', page.text)[1])
        rows = sum(len(group["rows"]) for group in data["groups"])
        points = [attrs for tag, attrs in page.elements if tag == "path" and attrs.get("class", "").startswith("d c")]
        legends = len(re.findall(r'class="legend">.*?</g>', page.text))
        self.assertGreater(rows, 4000)
        self.assertGreaterEqual(len(points), 3 * rows)
        self.assertLessEqual(len(points), 3 * rows + 6 * legends)
        self.assertEqual(len(self.rows("scatter", "--policy", "sequential")), rows)

    def test_names_are_escaped(self):
        def rename(graph):
            graph["name"] = "<b>&\"tiny\""
            graph["nodes"][2]["name"] = "a<b>&'\"c"
            graph["nodes"][3]["inputs"][1] = "a<b>&'\"c"
        self.cold = False
        page = self.execute("report", self.model(rename), "--device", "cpu", "--policy", "sequential", "--samples", 3,
                            "-o", "odd.html")
        self.accepted(page)
        checked = self.checked((self.folder / "odd.html").read_text(encoding="utf-8"))
        self.assertNotIn("<b>", checked.text)
        self.assertIn("a<b>&'\"c", checked.texts["graph"] + " ".join(a.get("aria-label", "") for _, a in checked.elements))

    def test_hostile_names(self):
        """Elements, quotes and characters that XML cannot hold, and names that are cut within a character."""
        names = ["</script><script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "<!--<script>", "]]>&amp;&lt;-->",
                 "' onmouseover='x", "a`b`c", "%s%n%d", "\U0001f600" * 60, "x" + "\U0001f600" * 60, "\uffff\ufffe\x01\x7f", "t\tn\nl",
                 "\\u003c${x}", "ä" * 120]
        graph = json.loads((ROOT / "models" / "googlenet.json").read_text())
        new = {node["name"]: f"{name}{i}" for i, node in enumerate(graph["nodes"]) for name in [names[i % len(names)]]}
        for node in graph["nodes"]:
            node.update(name=new[node["name"]], inputs=[new.get(value, value) for value in node["inputs"]])
        graph.update(name="<script>alert(2)</script>", outputs=[new.get(value, value) for value in graph["outputs"]])
        args = (self.file("odd.json", graph), "--dtype", "f16", "--device", f"sim:{PROFILES / 'h100-f16-b1.jsonl.gz'}")
        self.accepted(self.execute("report", *args, "-o", "odd.html"))
        page = self.checked((self.folder / "odd.html").read_text(encoding="utf-8"))
        self.assertEqual([tag for tag, _ in page.elements].count("script"), 2)
        self.assertFalse([tag for tag, attrs in page.elements if tag == "img" or any(a.startswith("on") for a in attrs)])
        for figure in FIGURES:
            with self.subTest(figure=figure):
                out, _ = self.accepted(self.execute("report", *args, "--policy", "streams", "--figure", figure, "--format",
                                                    "svg"))
                xml.etree.ElementTree.fromstring(out)


@unittest.skipIf(harness.SHORT, "long under a sanitizer")
class Figures(ReportTest):
    def test_svg_is_xml_with_a_style_of_its_own(self):
        for figure in FIGURES:
            with self.subTest(figure=figure):
                out, _ = self.accepted(self.report("--policy", "streams", "--figure", figure))
                root = xml.etree.ElementTree.fromstring(out)
                self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
                self.assertNotIn("var(", out)
                self.assertGreater(len(list(root.iter())), 20)
                for shape in root.iter("{http://www.w3.org/2000/svg}rect"):
                    self.assertGreaterEqual(float(shape.get("x")), -1)
                    self.assertLessEqual(float(shape.get("x")) + float(shape.get("width")), float(root.get("width")) + 1)

    def test_policies_are_those_of_run(self):
        self.accepted(self.execute("run", ROOT / "models" / "googlenet.json", "--dtype", "tf32", "--policy", "all", "--device",
                                   f"sim:{PROFILES / 'h100-tf32-b1.jsonl.gz'}", "--json", "run.json"))
        record = json.loads((self.folder / "run.json").read_text())
        wanted = {p["name"]: (p["predicted_us"], p["streams"], p["arena_bytes"]) for p in record["policies"]}
        found = {row["policy"]: row for row in self.rows("policies")}
        self.assertEqual(list(found), POLICIES)
        for name, (us, streams, arena) in wanted.items():
            self.assertAlmostEqual(float(found[name]["predicted_us"]), us, delta=1e-6 * us)
            self.assertEqual((int(found[name]["streams"]), int(found[name]["arena_bytes"])), (streams, arena))

    def plan(self):
        self.accepted(self.execute("plan", ROOT / "models" / "googlenet.json", "--dtype", "tf32", "--policy", "streams",
                                   "--device", f"sim:{PROFILES / 'h100-tf32-b1.jsonl.gz'}", "--json", "plan.json"))
        return json.loads((self.folder / "plan.json").read_text())

    def test_gantt_and_graph_are_the_plan(self):
        plan = {task["name"]: task for task in self.plan()["tasks"]}
        gantt = [row for row in self.rows("gantt", "--policy", "streams") if row["policy"] == "streams"]
        graph = [row for row in self.rows("graph", "--policy", "streams") if row["policy"] == "streams"]
        self.assertEqual({row["source"] for row in gantt}, {"simulated"})
        for rows, name in ((gantt, "node"), (graph, "task")):
            self.assertEqual({row[name] for row in rows}, set(plan))
            for row in rows:
                self.assertEqual((int(row["stream"]), row["candidate"]),
                                 (plan[row[name]]["stream"], plan[row[name]]["candidate"]["id"]))
        for row in graph:
            self.assertEqual(len(row["needs"].split()), len(set(row["needs"].split())))
        ends = {}
        for row in gantt:
            ends.setdefault(row["node"], []).append((float(row["start_us"]), float(row["end_us"])))
        first = min(task["start_us"] for task in plan.values())  # where the chart begins
        for name, spans in ends.items():
            self.assertAlmostEqual(min(a for a, _ in spans), plan[name]["start_us"] - first, delta=0.01)
            self.assertAlmostEqual(max(b for _, b in spans), plan[name]["end_us"] - first, delta=0.01)

    def test_all_figures_of_predicted_times_begin_at_once(self):
        first = {figure: min(float(row[column]) for row in self.rows(figure, "--policy", "streams"))
                 for figure, column in (("gantt", "start_us"), ("graph", "start_us"), ("arena", "first_us"), ("sm-use", "us"))}
        self.assertEqual(first, dict.fromkeys(first, 0))
        starts = {row["task"]: float(row["start_us"]) for row in self.rows("graph") if row["policy"] == "streams"}
        for row in self.rows("gantt"):
            if row["policy"] == "streams" and row["index"] == "0":
                self.assertAlmostEqual(float(row["start_us"]), starts[row["node"]], delta=1e-5)

    def test_what_lives_at_once_does_not_overlap_in_the_arena(self):
        rows = [row for row in self.rows("arena", "--policy", "streams") if row["policy"] == "streams"]
        boxes = [(float(r["first_us"]), float(r["last_us"]), int(r["offset_bytes"]), int(r["offset_bytes"]) + int(r["bytes"]))
                 for r in rows]
        arena = int(next(r for r in self.rows("policies", "--policy", "streams") if r["policy"] == "streams")["arena_bytes"])
        self.assertIn(arena - max(box[3] for box in boxes), range(256))  # its bytes are a multiple of the alignment
        self.assertEqual({row["kind"] for row in rows}, {"value", "input", "output", "workspace"})
        for i, a in enumerate(boxes):
            for b in boxes[:i]:
                together = min(a[1], b[1]) - max(a[0], b[0]) > 1e-6 and min(a[3], b[3]) > max(a[2], b[2])
                self.assertFalse(together, (a, b))

    def test_candidates_are_those_of_the_table(self):
        """Each of the table's is a point, with the same time, workspace and shares; those of the plan are marked."""
        points = {(row["layout"], row["candidate"]): row for row in self.rows("scatter", "--node", "inception_3a/3x3")}
        table = self.table("--table", "resources", "--candidates", "all", "--node", "inception_3a/3x3")
        self.assertGreater(len(table), 20)
        shares = {}
        for row in table:
            point = points[row["layout"], row["candidate"]]
            self.assertAlmostEqual(float(point["cold_us"]), row["cold_us"], places=4)
            self.assertEqual(int(point["workspace_bytes"]), row["workspace_bytes"])
            if row["registers_pct"] is not None:
                shares.setdefault((row["layout"], row["candidate"]), []).append(row["registers_pct"])
        for key, found in shares.items():
            self.assertAlmostEqual(float(points[key]["registers_pct"]), max(found), delta=0.51)  # the table's are whole
        chosen = {row["candidate"] for row in points.values() if row["chosen"] == "1"}
        planned = {row["candidate"] for row in self.rows("gantt")
                   if row["policy"] == "coselect" and row["node"] == "inception_3a/3x3"}
        self.assertEqual(chosen, planned)

    def test_sm_use_of_one_kernel_at_a_time(self):
        """On one stream never more than there is; every moment behind the one before."""
        rows = [row for row in self.rows("sm-use", "--policy", "sequential")]
        times = [float(row["us"]) for row in rows]
        self.assertEqual(times, sorted(set(times)))
        for row in rows:
            for name in ("registers_pct", "shared_pct", "threads_pct", "blocks_pct"):
                self.assertTrue(0 <= float(row[name]) <= 100.0001, row)
        self.assertEqual(float(rows[-1]["registers_pct"]), 0)
        self.assertGreater(max(float(row["registers_pct"]) for row in rows), 50)

    def test_forms(self):
        out, _ = self.accepted(self.report("--policy", "streams", "--figure", "policies", "--format", "md"))
        self.assertIn("| streams | ", out)
        for name, start in (("a.csv", "policy,"), ("a.md", "latency"), ("a.svg", "<svg ")):
            self.accepted(self.report("--policy", "streams", "--figure", "policies", "-o", name))
            self.assertTrue((self.folder / name).read_text(encoding="utf-8").startswith(start), name)
        out, err = self.accepted(self.report("--policy", "sequential", "--format", "html"))
        self.assertTrue(out.startswith("<!DOCTYPE html>"))
        self.assertNotIn("wrote", err)
        out, err = self.accepted(self.report("--table", "workspace", "--format", "csv", "-o", "t.csv"))
        self.assertEqual(out, "")
        self.assertIn("convsched: wrote t.csv\n", err)
        self.assertTrue((self.folder / "t.csv").read_text().startswith("node,"))


def run_record(model, device, policies):
    samples = lambda us: {"median": us, "samples": [us * k for k in (0.98, 0.99, 1, 1, 1.01, 1.02)]}
    return {"schema": "convsched.run/1", "model": model, "dtype": "tf32", "batch": 1, "device": {"name": device},
            "policies": [{"name": name, "layout": layout, "latency_us": samples(us)} for name, layout, us in policies]}


class Peers(ReportTest):
    def peers(self, *records):
        return self.file("peers.jsonl", "".join(json.dumps(record) + "\n" for record in records))

    def test_the_cell_of_this_page(self):
        here = run_record("googlenet", "NVIDIA H100 80GB HBM3",
                          [("coselect", None, 143.5), ("torch.compile", "nhwc", 580.25), ("jax.jit", "nchw", 533.0)])
        path = self.peers(run_record("resnet50", "NVIDIA H100 80GB HBM3", [("torch.eager", "nchw", 9.0)]), here)
        rows = self.rows("peers", "--peers", path, "--policy", "sequential")
        self.assertEqual([(row["contender"], row["layout"], float(row["median_us"])) for row in rows],
                         [("coselect", "", 143.5), ("jax.jit", "nchw", 533.0), ("torch.compile", "nhwc", 580.25)])
        page = self.page("--peers", path, "--policy", "sequential")
        self.assertIn("torch.compile", page.texts["peers"])
        self.assertEqual(page.missing_in("peers"), "")

    def test_another_device_is_told(self):
        path = self.peers(run_record("googlenet", "NVIDIA H200", [("torch.compile", "nhwc", 580.25)]))
        page = self.page("--peers", path, "--policy", "sequential")
        self.assertIn("of NVIDIA H200", page.missing_in("peers"))

    def test_no_such_cell(self):
        path = self.peers(run_record("resnet50", "NVIDIA H200", [("torch.compile", "nhwc", 580.25)]))
        page = self.page("--peers", path, "--policy", "sequential")
        self.assertIn("has no latency of googlenet, tf32, batch 1", page.missing_in("peers"))
        self.assertIn("python3 bench/peers.py --cells googlenet/tf32/1", page.missing_in("peers"))
        self.refused(self.report("--figure", "peers", "--peers", path), BAD_INPUT, "googlenet, tf32, batch 1")


class Holes(ReportTest):
    def holed(self, keep):
        """The recorded profile without some of its lines."""
        with gzip.open(PROFILES / "h100-tf32-b1.jsonl.gz", "rt", encoding="utf-8") as lines:
            return self.file("holed.jsonl", "".join(line for line in lines if keep(line)))

    def test_no_kernels(self):
        page = self.page("--policy", "streams", file=self.holed(lambda line: '"kernels":{' not in line))
        self.assertIn("kernels are not recorded", page.missing_in("summary"))
        self.assertIn("What keeps them apart is not known: their kernels are not recorded.", page.text)
        self.assertNotIn("Of 100%", page.text)
        self.assertIn("no kernels are recorded", page.missing_in("sm-use"))
        self.assertIn("no candidate whose kernels are recorded", page.missing_in("candidates"))
        self.assertNotIn("sm-use-streams-simulated", page.ids)
        self.assertIn("scatter-workspace", page.ids)
        for section in ("sm-use", "candidates"):
            self.assertIn("convsched profile", page.missing_in(section))

    def test_some_kernels(self):
        """Where kernels run that are not recorded, the use of SMs says so, and the mean is a lower bound."""
        count = itertools.count()
        holed = self.holed(lambda line: '"kernels":{' not in line or next(count) % 2)
        known = {row["start_us"]: row["kernel"] != "" for row in self.rows("gantt", "--policy", "sequential", file=holed)}
        found = {row["us"]: row["unknown_kernels"] for row in self.rows("sm-use", "--policy", "sequential", file=holed)}
        self.assertEqual({found[us] for us in known if known[us]}, {"0"})
        self.assertEqual({found[us] for us in known if not known[us]}, {"1"})
        for file, wanted in ((holed, True), (None, False)):
            page = self.page("--policy", "sequential", file=file)
            grey = [attrs for tag, attrs in page.elements if tag == "rect" and attrs.get("class") == "unknown"]
            self.assertEqual((len(grey) > 1, "mean ≥ " in page.text), (wanted, wanted))

    def test_no_coruns(self):
        page = self.page("--policy", "streams", file=self.holed(lambda line: '"corun":{' not in line))
        self.assertIn("--corun", page.missing_in("complementary"))

    def test_coruns_of_absurd_times(self):
        """What is no time is damaged; a gain beyond a double is null."""
        with gzip.open(PROFILES / "h100-tf32-b1.jsonl.gz", "rt", encoding="utf-8") as file:
            lines = file.readlines()
        for values, gain in ((("0", "-5", "9.5"), 1), (("1e300", "1e-300"), None)):
            for i, line in enumerate(lines):
                lines[i] = re.sub(r'("corun":.*?"concurrent_us":)[^,]*', rf"\g<1>{values[i % len(values)]}", line)
            path = self.file("absurd.jsonl", "".join(lines))
            out, err = self.accepted(self.execute("report", ROOT / "models" / "googlenet.json", "--dtype", "tf32", "--profile",
                                                  path, "--table", "complementary", "--format", "json"))
            self.assertEqual(json.loads(out)["summary"]["best_gain"], gain)
            self.assertEqual("damaged" in err, gain == 1)
        self.page("--policy", "streams", file=path)

    def test_an_operation_that_was_not_measured(self):
        """There is no plan then, and nothing is drawn in its place; what was measured is shown."""
        page = self.page(file=self.holed(lambda line: "x=1x480x28x28" not in line))
        self.assertIn("not recorded", page.missing_in("summary"))
        self.assertIn("convsched profile", page.missing_in("summary"))
        for section in ("timelines", "sm-use", "memory", "graph"):
            self.assertIn("there is no plan", page.missing_in(section))
        self.assertEqual({attrs["id"] for tag, attrs in page.elements if tag == "svg"},
                         {"scatter-workspace", "scatter-registers", "scatter-shared"})
        self.assertIn("scatter-workspace", page.ids)
        self.assertRegex(page.missing_in("summary"), r"measurements of \d+ of the network's")

    def test_nothing_was_measured(self):
        page = self.page(model="resnet50", dtype="tf32", file=self.holed(lambda line: "x=1x480x28x28" in line or
                                                                         "device_info" in line))
        self.assertIn("no measurement of", page.missing_in("candidates"))
        self.assertNotIn("<svg", page.text)
        self.assertIn("NVIDIA H100", page.texts["environment"])

    def test_a_profile_without_a_device(self):
        """As on a simulated device; one of no GPU gives tables, but no plan."""
        page = self.execute("report", ROOT / "models" / "googlenet.json", "--dtype", "tf32", "--policy", "streams",
                            "--profile", PROFILES / "h100-tf32-b1.jsonl.gz", "-o", "page.html")
        self.accepted(page)
        found = self.checked((self.folder / "page.html").read_text(encoding="utf-8"))
        self.assertIn("gantt-streams-simulated", found.ids)
        self.accepted(self.execute("report", self.model(), "--profile", self.cpu_profile(), "-o", "cpu.html"))
        found = self.checked((self.folder / "cpu.html").read_text(encoding="utf-8"))
        self.assertIn("there is no plan", found.missing_in("timelines"))
        self.assertIn("scatter-workspace", found.ids)
        self.assertIn("no SMs", found.missing_in("candidates"))

    def cpu_profile(self):
        """What the tiny graph's measurements are in."""
        return next((pathlib.Path(harness.warm_cache().name)).rglob("*.jsonl"))


class Measured(CommandTest):
    def test_a_page_of_this_machine(self):
        out, _ = self.accepted(self.execute("report", self.model(), "--device", "cpu", "--policy", "sequential,streams",
                                            "--samples", 7, "-o", "page.html"))
        self.assertEqual(out, "")
        page = Page((self.folder / "page.html").read_text(encoding="utf-8"))
        self.assertEqual(page.errors, [])
        self.assertIn("7 samples", page.texts["summary"])
        self.assertIn("Predicted were", page.texts["summary"])
        self.assertIn("gantt-streams-measured", page.ids)
        self.assertIn("gantt-streams-planned", page.ids)
        self.assertEqual(page.missing_in("timelines"), "")
        self.assertIn("the device has none", page.missing_in("sm-use"))
        self.assertNotIn("convsched profile", page.missing_in("sm-use"))  # a CPU's would not give it

    def test_one_of_a_kind(self):
        model = self.file("one.json", {"schema": "convsched.graph/1", "name": "one",
                                       "inputs": [{"name": "x", "shape": ["N", 3, 8, 8], "dtype": "f32"}],
                                       "nodes": [{"name": "pool", "op": "MaxPool", "inputs": ["x"],
                                                  "attrs": {"kernel_shape": [2, 2], "strides": [2, 2]}}],
                                       "outputs": ["pool"]})
        self.accepted(self.execute("report", model, "--device", "cpu", "--policy", "sequential", "--samples", 3, "-o",
                                   "page.html"))
        page = Page((self.folder / "page.html").read_text(encoding="utf-8"))
        self.assertIn("1 kernel on 1 stream, measured", page.texts["summary"])
        self.assertRegex(page.texts["candidates"], r"[0-9]+ candidates? of 1 different operation,")
        self.assertRegex(page.missing_in("peers"), "bench/peers.py --cpu --cells [a-z]+/f32/1")

    def test_estimates_that_the_run_disproves_bind_nothing(self):
        how = ("report", self.model(), "--device", "cpu", "--policy", "sequential", "--samples", 7, "-o", "page.html")
        for factor, told in ((1e6, "neither tells what binds"), (1e-5, " binds: the plan takes")):
            self.accepted(self.execute(*how))
            (cache,) = (self.folder / "cache").rglob("*.jsonl")
            whole = cache.read_text()
            cache.write_text(re.sub(r'"(cold_us|warm_us|p10_us|p90_us)":([0-9.e+-]+)',
                                    lambda found: f'"{found[1]}":{float(found[2]) * factor}', whole))
            self.accepted(self.execute(*how))  # may measure a layout that only now pays
            page = Page((self.folder / "page.html").read_text(encoding="utf-8"))
            self.assertIn(told, page.texts["summary"])
            cache.write_text(whole)

    def test_figures_of_this_machine(self):
        out, _ = self.accepted(self.execute("report", self.model(), "--device", "cpu", "--policy", "streams", "--samples", 7,
                                            "--figure", "policies", "--format", "csv"))
        rows = list(csv.DictReader(io.StringIO(out)))
        self.assertEqual([(row["policy"], row["samples"]) for row in rows], [("sequential", "7"), ("streams", "7")])
        for row in rows:
            self.assertLessEqual(float(row["low_us"]), float(row["median_us"]))
            self.assertLessEqual(float(row["median_us"]), float(row["high_us"]))


class WrongUse(ReportTest):
    def test_what_goes_together(self):
        self.refused(self.report(), USAGE, "--table", "-o FILE.html")
        self.refused(self.report("--figure", "gant"), USAGE, "gant", "near it: gantt")
        for form in ("html", "json"):
            self.refused(self.report("--figure", "gantt", "--format", form), USAGE, "svg")
        self.refused(self.report("--format", "csv", "-o", "page.csv"), USAGE, "--figure")
        self.refused(self.report("--table", "workspace", "--policy", "streams"), USAGE, "--policy")
        self.refused(self.report("--table", "workspace", "--samples", 5), USAGE, "--samples")
        self.refused(self.report("--table", "workspace", "--figure", "gantt"), USAGE, "--figure")
        self.refused(self.report("-o", "page.html", "--policy", "streams,fast"), USAGE, "fast", "coselect")
        self.refused(self.report("-o", "page.html", "--json", "x.json"), USAGE, "--json")
        self.refused(self.report("-o", "page.html", "--batch", "1,2"), USAGE, "--batch")
        self.refused(self.report("-o", "page.html", "--profile", PROFILES / "h100-tf32-b1.jsonl.gz"), USAGE, "--profile")

    def test_no_such_files(self):
        self.refused(self.report("-o", "page.html", "--peers", "nowhere.jsonl"), FAILURE, "nowhere.jsonl")
        self.refused(self.report("-o", "page.html", "--node", "conf"), BAD_INPUT, "conf")
        self.assertFalse((self.folder / "page.html").exists())

    def test_a_place_that_cannot_be_written(self):
        """Found out before anything is measured: the cache is not even there."""
        for path in ("no/such/folder/page.html", "."):
            self.refused(self.execute("report", self.model(), "--device", "cpu", "-o", path), FAILURE, path)
        self.assertFalse((self.folder / "cache").exists())
        self.assertEqual(list(self.folder.glob("*.tmp.*")), [])

    def test_what_is_read_is_not_replaced(self):
        peers = self.file("peers.jsonl", "{}\n")
        self.refused(self.report("-o", peers, "--peers", peers), USAGE, "--peers")


if __name__ == "__main__":
    harness.main()
