"""Completion in bash and zsh: what is offered, and what a tabulator makes of a line."""
import os
import re
import shutil

import harness
from harness import ROOT, CommandTest
from terminal import Terminal

MODEL = {"a.json": "{}", "b.onnx": "x", "c.txt": "x", "d.safetensors": "x", "e.jsonl": "x", "f.jsonl.gz": "x"}


class Files(CommandTest):
    cold = True

    def setUp(self):
        super().setUp()
        for name, content in MODEL.items():
            self.file(name, content)
        self.model()  # tiny.json
        (self.folder / "sub folder").mkdir()
        self.file("sub folder/g.json", "{}")


class Offers(Files):
    """`convsched --complete`"""

    def offered(self, *words):
        out, err = self.accepted(self.execute("--complete", *words))
        self.assertEqual(err, "")
        kind, *lines = out.splitlines()
        return kind, sorted(line.split("\t")[0] for line in lines)

    def words(self, *words):
        kind, found = self.offered(*words)
        self.assertEqual(kind, "words")
        return found

    def files(self, *words):
        kind, found = self.offered(*words)
        self.assertEqual(kind, "files")
        return found

    def test_commands(self):
        out, _ = self.accepted(self.execute("--help"))
        listed = re.findall(r"(?m)^  ([a-z-]+) +[A-Z]", out.split("Commands:\n")[1].split("\n\n")[0])
        self.assertEqual(self.words(""), sorted(listed))
        self.assertEqual(self.words("imp"), ["import"])
        self.assertEqual(self.words("--v"), ["--version"])
        self.assertEqual(self.words("no-such-command", ""), [])

    def test_options_are_those_of_help(self):
        for command in self.words(""):
            with self.subTest(command):
                text, _ = self.accepted(self.execute(command, "--help"))
                self.assertEqual(self.words(command, "--"),
                                 sorted(set(re.findall(r"(?m)^ +(?:-., )?(--[a-z-]+)", text))))

    def test_every_value_offered_is_taken(self):
        """Of all options of all commands: what is offered, and is no beginning of more, parses."""
        tried = 0
        for command in self.words(""):
            for option in self.words(command, "--"):
                kind, values = self.offered(command, f"{option}=")
                for value in values:
                    if kind == "words" and not value.endswith((":", "=")):
                        _, _, err = self.execute("--parse-only", command, value, "a", "b")
                        self.assertNotIn("wanted", err.replace("wanted two files", "").splitlines()[:1])
                        self.assertNotIn(option, err)
                        tried += 1
        self.assertGreater(tried, 30)

    def test_values(self):
        policies = ["coselect", "ios", "opara", "sequential", "streams"]
        self.assertEqual(self.words("run", "--policy", ""), sorted(policies + ["all"]))
        self.assertEqual(self.words("run", "--policy=s"), ["--policy=sequential", "--policy=streams"])
        self.assertEqual(self.words("run", "--dtype", "f32,"), ["f32,bf16", "f32,f16", "f32,f32", "f32,tf32"])
        self.assertEqual(self.words("run", "--verify", ""), ["full", "none", "sample"])
        self.assertEqual(self.words("profile", "--depth", ""), ["default", "full"])
        self.assertEqual(self.words("report", "--format", ""), ["csv", "html", "json", "md", "svg", "text"])
        self.assertEqual(self.words("compare", "--format", ""), ["csv", "json", "md", "text"])
        self.assertEqual(self.words("report", "--figure", "sc"), ["scatter", "scatter-registers", "scatter-shared"])
        self.assertEqual(self.words("plan", "--policy", ""), policies)
        self.assertEqual(self.words("report", "--policy", "streams,i"), ["streams,ios"])
        self.assertEqual(self.words("run", "--device", ""), ["auto", "cpu", "cuda:", "sim:"])
        self.assertEqual(self.files("run", "--device", "sim:"), ["sim:e.jsonl", "sim:f.jsonl.gz", "sim:sub folder/"])
        self.assertEqual(self.words("bench", "gemm", "--rungs", "naive,g"), ["naive,gather", "naive,gemm"])
        self.assertEqual(self.words("run", "--batch", ""), [])
        self.assertEqual(self.words("experiment", "--only", ""), [])
        self.assertEqual(self.words("cache", ""), ["clear", "list", "path"])

    def test_figures_are_those_that_are_told_of(self):
        page = (ROOT / "docs/report-page.md").read_text().split("## Single figures")[1]
        told = re.findall(r"`([a-z-]+)`", page[:page.index("as SVG")])
        self.assertIn("gantt", told)
        self.assertEqual(self.words("report", "--figure", ""), sorted(told))
        for name in told:
            self.assertEqual(self.words("report", f"--figure={name}")[0], f"--figure={name}")
            self.accepted(self.execute("--parse-only", "report", "tiny.json", "--figure", name))

    def test_files(self):
        self.assertEqual(self.files("run", ""), ["a.json", "b.onnx", "sub folder/", "tiny.json"])
        self.assertEqual(self.files("run", "sub folder/"), ["sub folder/g.json"])
        self.assertEqual(self.files("import", ""), ["b.onnx", "sub folder/"])
        self.assertEqual(self.files("run", "a.json", "--weights="), ["--weights=d.safetensors", "--weights=sub folder/"])
        self.assertEqual(self.files("run", "a.json", "--plan", ""), ["a.json", "sub folder/", "tiny.json"])
        self.assertEqual(self.files("run", "a.json", "--cache", ""), ["sub folder/"])
        self.assertEqual(self.files("run", "a.json", "--input", "x=c"), ["x=c.txt"])
        self.assertEqual(self.files("import", "b.onnx", "-o", ""), ["a.json", "sub folder/", "tiny.json"])
        self.file("g.png", "x")
        self.assertEqual(self.files("generate", "a.json", "--output", ""), ["g.png", "sub folder/"])
        self.env["HOME"] = str(self.folder)
        self.assertEqual(self.files("run", "~/t"), ["~/tiny.json"])

    def test_nodes(self):
        self.assertEqual(self.words("run", "tiny.json", "--algorithm", "c"), ["cat=", "conv1=", "conv2="])
        self.assertEqual(self.words("profile", "tiny.json", "--node=r"), ["--node=relu1"])
        self.assertEqual(self.words("run", "--batch", "4", "tiny.json", "--dump", "conv"), ["conv1", "conv2"])
        self.assertEqual(self.words("run", "a.json", "--dump", ""), [])
        self.assertEqual(self.words("run", "--dump", ""), [])

    def test_nodes_of_several_lines(self):
        def rename(graph):
            graph["nodes"][0]["name"] = graph["nodes"][1]["inputs"][0] = "a\nconv9"
        self.file("tiny.json", harness.graph(rename))
        self.assertEqual(self.words("run", "tiny.json", "--dump", ""), ["cat", "conv2", "relu1"])


class Shells(Files):
    """A script in the command's place completes as the command does, and otherwise prints its arguments."""

    def setUp(self):
        super().setUp()
        bin_folder = self.folder / "bin"
        bin_folder.mkdir()
        script = bin_folder / "convsched"
        script.write_text(f'#!/bin/sh\ncase $1 in --complete) exec "{harness.COMMAND}" "$@" ;; esac\n'
                          "printf '<ran:'\nprintf ' [%s]' \"$@\"\nprintf '>\\n'\n")
        script.chmod(0o755)
        self.env.update(PATH=f"{bin_folder}:{os.environ['PATH']}", TERM="dumb", PS1="$ ", HOME=str(self.folder))

    CASES = (  # what is typed, what then runs
        ("convsched prof\t", ["profile"]),
        ("convsched run tiny.json --pol\tstr\t", ["run", "tiny.json", "--policy", "streams"]),
        ("convsched run ti\t--policy=cos\t", ["run", "tiny.json", "--policy=coselect"]),
        ("convsched run tiny.json --dtype tf32,bf\t", ["run", "tiny.json", "--dtype", "tf32,bf16"]),
        ("convsched run tiny.json --device cu\t0", ["run", "tiny.json", "--device", "cuda:0"]),
        ("convsched run tiny.json --device sim:e\t", ["run", "tiny.json", "--device", "sim:e.jsonl"]),
        ("convsched run tiny.json --device=sim:e\t", ["run", "tiny.json", "--device=sim:e.jsonl"]),
        ("convsched run sub\t\t", ["run", "sub folder/g.json"]),
        ("convsched run tiny.json --weights=d\t", ["run", "tiny.json", "--weights=d.safetensors"]),
        ("convsched run tiny.json --algorithm conv1\tid", ["run", "tiny.json", "--algorithm", "conv1=id"]),
        ("convsched cache cl\t", ["cache", "clear"]),
        ("convsched report tiny.json --figure ga\t", ["report", "tiny.json", "--figure", "gantt"]),
        ("convsched report tiny.json --figure=scatter-s\t", ["report", "tiny.json", "--figure=scatter-shared"]),
    )

    def run_lines(self, args, ready):
        terminal = Terminal([shutil.which(args[0]), *args[1:]], self.folder, self.env, columns=1000)
        self.addCleanup(terminal.close)
        for line in ready:
            self.type(terminal, line, "")
        for typed, wanted in self.CASES:
            with self.subTest(args[0], typed=typed):
                written = self.type(terminal, typed, ">")
                self.assertEqual(re.findall(r"<ran: (.*)>", written)[-1:], [" ".join(f"[{word}]" for word in wanted)],
                                 written)

    def type(self, terminal, line, wanted):
        """Types it, a tabulator as the last of what is typed at once; what was written since."""
        before = len(terminal.written)
        for part in re.findall(r"[^\t]+\t?|\t", line) + ["\r"]:
            seen = len(terminal.written)
            terminal.key(part.encode())
            for _ in range(100 if part.endswith(("\t", "\r")) else 5):
                terminal.read(0.05)
                text = re.sub(r"\x1b\[\?2004[hl]", "", terminal.written[seen:].decode())
                if part == "\r" and wanted in text and text.rstrip().endswith(("$", "#", "%")):
                    break
                if part.endswith("\t") and len(text) > len(part) - 1:
                    terminal.read(0.1)
                    break
        return terminal.written[before:].decode().replace("\r", "")

    def test_bash(self):
        self.run_lines(["bash", "--norc", "--noprofile", "-i"],
                       [f"source {ROOT}/completions/convsched.bash", "bind 'set bell-style none'",
                        "bind 'set enable-bracketed-paste off'", "PS1='$ '"])

    def test_zsh(self):
        harness.find_tool(self, "zsh", "zsh")
        self.run_lines(["zsh", "-f", "-i"],
                       ["unset zle_bracketed_paste", "PS1='$ '", "unsetopt beep prompt_sp", f"fpath=({ROOT}/completions $fpath)",
                        "autoload -Uz compinit && compinit -u -D"])


if __name__ == "__main__":
    harness.main()
