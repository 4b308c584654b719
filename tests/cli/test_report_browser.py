"""A report's page in a real browser: no errors, charts that are seen, colours that can be read in light and dark, tooltips by
mouse and keys, narrow windows, print. Without Chromium it fails where checks are required ($CS_CHECKS_REQUIRED), and is
skipped elsewhere."""
import os
import re
import subprocess
import tempfile
import unittest

import browser
import harness
from harness import ROOT

PROFILE = ROOT / "tests" / "data" / "profiles" / "h100-tf32-b1.jsonl.gz"
PEERS = ROOT / "bench" / "results" / "2026-11-29-h200-peers.jsonl"

# Every text that is seen: [colour, background, size, bold, text]. In a mark of a figure the background is the box's.
COLOURS = """(() => {
  const found = [], clear = (c) => c === "rgba(0, 0, 0, 0)" || c === "transparent" || c === "none";
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const element = node.parentElement, box = element.getBoundingClientRect(), style = getComputedStyle(element);
    if (!node.textContent.trim() || box.width === 0 || element.closest("script, style, title, option, .skip")) continue;
    const mark = element.closest("svg .m"), rect = mark && mark.querySelector("rect");
    let back = rect && element.tagName === "text" && !element.matches(".name, .value") ? getComputedStyle(rect).fill : "none";
    for (let at = element; at && clear(back); at = at.parentElement) back = getComputedStyle(at).backgroundColor;
    if (clear(back)) back = getComputedStyle(document.body).backgroundColor;
    found.push([element.closest("svg") ? style.fill : style.color, back, parseFloat(style.fontSize), style.fontWeight >= 600,
                node.textContent.trim().slice(0, 40)]);
  }
  return found;
})()"""


class Rendered(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        missing = browser.missing()
        if missing and os.environ.get("CS_CHECKS_REQUIRED") == "1":
            raise RuntimeError(f"{missing} is not there, and checks are required")
        if missing:
            raise unittest.SkipTest(f"{missing} is not there")
        cls.folder = tempfile.TemporaryDirectory(prefix="convsched-page-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = os.path.join(cls.folder.name, "page.html")
        subprocess.run([harness.COMMAND, "report", "models/googlenet.json", "--dtype", "tf32", "--policy", "streams,coselect",
                        "--device", f"sim:{PROFILE}", "--peers", PEERS, "-o", cls.path], check=True, cwd=ROOT, timeout=300,
                       stdin=subprocess.DEVNULL)
        cls.tab = browser.Browser()
        cls.addClassCleanup(cls.tab.close)

    def setUp(self):
        self.tab.problems.clear()
        self.tab.requests.clear()
        self.tab.resize(1280, 900)
        self.tab.scheme("light")
        self.tab.open(self.path)

    def tearDown(self):
        self.assertEqual(self.tab.problems, [], "the console says so")
        self.assertEqual([url for url in self.tab.requests if not url.startswith(("file:", "data:"))], [])

    def ask(self, expression):
        return self.tab.ask(expression)

    def tip(self):
        """What the tooltip says; None: it is not shown."""
        return self.ask("document.getElementById('tip').hidden ? null : document.getElementById('tip').innerText")

    def focus(self, selector):
        self.ask(f"document.querySelector('{selector}').scrollIntoView({{block: 'center', behavior: 'instant'}})")
        self.ask(f"document.querySelector('{selector}').focus()")

    def middle(self, expression):
        return self.ask(f"(() => {{ const b = ({expression}).getBoundingClientRect();"
                        " return [b.left + b.width / 2, b.top + b.height / 2]; })()")

    def test_charts_are_seen(self):
        for wanted in ("policies-chart", "gantt-coselect-simulated", "sm-use-coselect-simulated", "scatter-workspace",
                       "scatter-registers", "scatter-shared", "arena-coselect", "graph-coselect", "peers-chart"):
            width, height, marks = self.ask(
                f"(() => {{ const s = document.getElementById('{wanted}'), b = s.getBoundingClientRect();"
                " return [b.width, b.height, s.querySelectorAll('.m, .d').length]; })()")
            self.assertGreater(width, 300, wanted)
            self.assertGreater(height, 100, wanted)
            self.assertGreater(marks, 2, wanted)

    def test_texts_of_charts_lie_within_them(self):
        outside = self.ask("""[...document.querySelectorAll("svg text")].filter((t) => {
          const b = t.getBoundingClientRect(), s = t.closest("svg").getBoundingClientRect();
          return b.width && (b.left < s.left - 1 || b.right > s.right + 1 || b.top < s.top - 1 || b.bottom > s.bottom + 1);
        }).map((t) => t.closest("svg").id + ": " + t.textContent)""")
        self.assertEqual(outside, [])

    def test_labels_do_not_lie_on_each_other(self):
        """Ticks, names and values of each chart, and the names in boxes, which keep to their box."""
        on_each_other = self.ask("""(() => {
          const found = [];
          for (const svg of document.querySelectorAll("svg.figure")) {
            const texts = [...svg.querySelectorAll(".tick, .label, .name, .value")].map((t) => [t, t.getBoundingClientRect()])
              .filter(([t, b]) => b.width > 0);
            texts.forEach(([t, a], i) => texts.slice(i + 1).forEach(([u, b]) => {
              const x = Math.min(a.right, b.right) - Math.max(a.left, b.left), y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
              if (x > 1 && y > 3) found.push(svg.id + ": " + t.textContent + " / " + u.textContent);
            }));
            for (const text of svg.querySelectorAll(".boxes text")) {
              const a = text.getBoundingClientRect(), b = text.parentNode.querySelector("rect").getBoundingClientRect();
              if (a.width && a.right > b.right + 2) found.push(svg.id + ": " + text.textContent + " beyond its box");
            }
          }
          return found;
        })()""")
        self.assertEqual(on_each_other, [])

    def test_colours_can_be_read(self):
        """WCAG AA: 4.5 for text, 3 for what is large."""
        seen = {}
        for scheme in ("light", "dark"):
            self.tab.scheme(scheme)
            self.tab.open(self.path)
            texts = self.ask(COLOURS)
            self.assertGreater(len(texts), 500)
            seen[scheme] = self.ask("getComputedStyle(document.body).backgroundColor")
            for colour, back, size, bold, text in texts:
                wanted = 3 if size >= 24 or bold and size >= 18.66 else 4.5
                self.assertGreaterEqual(browser.contrast(colour, back), wanted, f"{scheme}: {text}: {colour} on {back}")
        self.assertNotEqual(seen["light"], seen["dark"])

    def test_a_click_tells_of_a_candidate(self):
        point = "document.querySelectorAll('#scatter-workspace .d')[300]"
        self.ask(f"{point}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        x, y = self.middle(point)
        self.assertIsNone(self.tip())
        self.tab.click(x, y)
        tip = self.tip()
        row, nodes = self.ask("""(() => {
          const mark = document.querySelector("#scatter-workspace .at"), group = mark.parentNode;
          const data = JSON.parse(document.getElementById("candidate-data").textContent).groups[group.dataset.group];
          return [data.rows[[...group.children].indexOf(mark)], data.nodes];
        })()""")
        self.assertEqual(tip.split("\n")[:2], [row[0], nodes])
        self.assertIn(f"time alone: {row[2]}", tip)
        self.assertRegex(row[2], r"^[\d.]+ (µs|ms)$")
        self.assertIn(f"workspace: {row[4]}", tip)
        box = self.ask("(() => { const b = document.getElementById('tip').getBoundingClientRect();"
                       " return [b.left, b.top, innerWidth - b.right, innerHeight - b.bottom]; })()")
        self.assertGreaterEqual(min(box), 0, "the tooltip is cut off")
        self.tab.press("Escape")
        self.assertIsNone(self.tip())

    def test_pointing_tells_and_leaving_ends(self):
        mark = "document.querySelector('#gantt-coselect-simulated .m')"
        self.ask(f"{mark}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        self.tab.move(*self.middle(mark))
        self.assertIn("Conv · stream 0", self.tip())
        self.tab.move(5, 5)
        self.assertIsNone(self.tip())

    def test_keys_go_from_item_to_item(self):
        self.focus("#gantt-coselect-simulated")
        told = []
        for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "End", "Home", "ArrowDown"):
            self.tab.press(key)
            told.append(self.tip())
        self.assertEqual(told[0], told[2])
        self.assertEqual(told[0], told[4])
        self.assertEqual(len(set(told)), 4, told)
        self.assertNotIn("stream 0", told[5])
        self.tab.press("Escape")
        self.assertIsNone(self.tip())
        self.focus("#scatter-registers")
        self.tab.press("ArrowRight")
        first = self.tip()
        self.assertIn("registers % of an SM: ", first)
        self.tab.press("ArrowRight")
        self.assertNotEqual(self.tip(), first)

    def test_everything_can_be_reached_by_tab(self):
        reached = set()
        self.tab.press("Tab")
        self.assertEqual(self.ask("document.activeElement.className"), "skip")
        for _ in range(400):
            self.tab.press("Tab")
            reached.add(self.ask("document.activeElement.id || document.activeElement.textContent.slice(0, 20)"))
            if "peers-chart" in reached:
                break
        self.assertLessEqual({"gantt-coselect-simulated", "scatter-workspace", "arena-coselect", "graph-coselect", "Zoom in",
                              "timelines-coselect-tab"}, reached)

    def test_tabs(self):
        shown = "[...document.querySelectorAll('#timelines .panel')].filter((p) => !p.hidden).map((p) => p.dataset.name)"
        self.assertEqual(self.ask(shown), ["coselect"])
        self.focus("#timelines-coselect-tab")
        self.tab.press("ArrowLeft")
        self.assertEqual(self.ask(shown), ["streams"])
        self.assertEqual(self.ask("document.activeElement.id"), "timelines-streams-tab")
        self.assertGreater(self.ask("document.getElementById('gantt-streams-simulated').getBoundingClientRect().width"), 300)

    def test_zoom(self):
        """Boxes become wider, and where there is room names appear."""
        width = "document.querySelector('#gantt-coselect-simulated .m rect').getBoundingClientRect().width"
        height = "document.getElementById('gantt-coselect-simulated').getBoundingClientRect().height"
        names = "document.querySelectorAll('#gantt-coselect-simulated .boxes text').length"
        before = [self.ask(what) for what in (width, height, names)]
        self.focus("#gantt-coselect-simulated")
        self.tab.press("+", "+")
        self.tab.press("+", "+")
        after = [self.ask(what) for what in (width, height, names)]
        self.assertAlmostEqual(after[0], 4 * before[0], delta=2)
        self.assertAlmostEqual(after[1], before[1], delta=1)
        self.assertGreater(after[2], before[2])
        self.tab.press("0", "0")
        self.assertEqual([self.ask(what) for what in (width, height, names)], before)

    def test_one_operation_of_the_scatter(self):
        visible = "[...document.querySelectorAll('#scatter-workspace [data-group] > .d')].filter((d) => d.getBoundingClientRect().left !== 0).length"
        before = self.ask(visible)
        self.ask("(() => { const s = document.querySelector('.scatters select'); s.value = '3';"
                 " s.dispatchEvent(new Event('change')); })()")
        rows = self.ask("JSON.parse(document.getElementById('candidate-data').textContent).groups[3].rows.length")
        self.assertEqual(self.ask(visible), rows)
        self.assertGreater(before, rows)

    def test_tables_are_sorted(self):
        column = "[...document.querySelectorAll('#workspace tbody tr')].map((r) => r.cells[{}].textContent)"
        self.ask("document.querySelectorAll('#workspace th button')[5].click()")
        times = [float(text) for text in self.ask(column.format(5)) if text != "–"]
        self.assertEqual(times, sorted(times))
        self.ask("document.querySelectorAll('#workspace th button')[4].click()")
        unit = {"B": 1, "KiB": 1024, "MiB": 1 << 20, "GiB": 1 << 30}
        sizes = [float(text.split()[0]) * unit[text.split()[1]] for text in self.ask(column.format(4)) if " " in text]
        self.assertEqual(sizes, sorted(sizes))
        self.assertEqual(self.ask("document.querySelectorAll('#workspace th')[4].getAttribute('aria-sort')"), "ascending")

    def test_narrow(self):
        self.tab.resize(400, 800)
        self.tab.open(self.path)
        self.assertLessEqual(self.ask("document.documentElement.scrollWidth"), 400)

    def test_print(self):
        pdf = self.tab.printed()
        self.assertEqual(pdf[:5], b"%PDF-")
        self.assertGreater(len(re.findall(rb"/Type\s*/Page\b", pdf)), 4)

    def test_print_is_light_and_fits(self):
        """Whatever the screen's colours: paper is white; every policy's charts are there."""
        self.tab.resize(794, 1123)  # A4
        self.tab.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.assertEqual(self.ask("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
        self.assertLessEqual(self.ask("document.documentElement.scrollWidth"), 794)
        hidden = self.ask("[...document.querySelectorAll('.panel')].filter((p) => p.getBoundingClientRect().height === 0).length")
        self.assertEqual(hidden, 0)

    def test_without_script(self):
        """All panels and figures are there."""
        self.tab.call("Emulation.setScriptExecutionDisabled", value=True)
        self.addCleanup(self.tab.call, "Emulation.setScriptExecutionDisabled", value=False)
        self.tab.open(self.path)
        sizes = {}
        root = self.tab.call("DOM.getDocument", depth=-1)["root"]["nodeId"]
        for node in self.tab.call("DOM.querySelectorAll", nodeId=root, selector="svg.figure")["nodeIds"]:
            name = dict(zip(*[iter(self.tab.call("DOM.getAttributes", nodeId=node)["attributes"])] * 2))["id"]
            model = self.tab.call("DOM.getBoxModel", nodeId=node)["model"]
            sizes[name] = (model["width"], model["height"])
        self.assertIn("gantt-sequential-simulated", sizes)
        self.assertGreater(min(min(size) for size in sizes.values()), 60, sizes)


if __name__ == "__main__":
    harness.main()
