"""--help and man pages: that each has examples, that these are what the command takes, and that pages say it all."""
import os
import re
import shlex
import subprocess
import unittest

import harness
from harness import OK, ROOT, CommandTest


def commands():
    """Names of all commands, as --help lists them."""
    out = subprocess.run([harness.COMMAND, "--help"], check=True, capture_output=True, text=True).stdout
    return re.findall(r"(?m)^  ([a-z-]+) +[A-Z]", out.split("Commands:\n")[1].split("\n\n")[0])


def examples(text):
    """Words of every example of a --help or of a formatted page: lines that begin with the command's name."""
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [shlex.split(re.split(r" [|>] ", line)[0])[1:] for line in lines if re.match(r" +convsched ", line)]


class Documents(unittest.TestCase):
    def test_programs_that_they_call_can_be_called(self):
        found = set()
        for document in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")):
            text = document.read_text(encoding="utf-8")
            found |= set(re.findall(r"(?m)^    ((?:tools|bench)/[\w.]+) ", text))
            found |= set(re.findall(r"`((?:tools|bench)/\w+\.(?:py|sh)) [^`]+`", text))
        self.assertGreater(len(found), 5)
        for program in sorted(found):
            self.assertTrue(os.access(ROOT / program, os.X_OK), program)


class Help(CommandTest):
    cold = True

    def help_of(self, command):
        out, err = self.accepted(self.execute(command, "--help"))
        self.assertEqual(err, "")
        return out

    def page(self, name, folder):
        """The page as text: no bold, no hyphenation."""
        result = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-P-c", "-rLL=200n", "-rHY=0", folder / name],
                                capture_output=True, text=True, check=True, env=dict(self.env, LC_ALL="C.UTF-8"))
        self.assertEqual(result.stderr, "", name)
        return re.sub(r".\x08", "", result.stdout)

    def test_all_commands_are_listed(self):
        found = set(commands())
        sources = (ROOT / "src/cli").glob("*.c")
        wanted = {name for source in sources
                  for name in re.findall(r"const cli_command cli_\w+ = \{\s*\.name = \"([^\"]+)\"", source.read_text())}
        self.assertGreater(len(wanted), 10)
        self.assertEqual(found, wanted)

    def test_examples(self):
        """Each command has one, on lines that can be pasted, and takes its options and arguments."""
        for command in commands():
            with self.subTest(command):
                text = self.help_of(command)
                self.assertRegex(text, r"(?m)^Examples?:$")
                found = examples(text)
                self.assertTrue(any(words[0] == command for words in found), found)
                for words in found:
                    self.accepted(self.execute("--parse-only", *words))
                for line in text.splitlines():
                    self.assertLessEqual(len(line), 80, line)

    def test_no_line_of_blanks(self):
        for command in commands():
            self.assertNotRegex(self.help_of(command), r"(?m)^ +$", command)

    def test_lists_and_all_are_told_where_they_are_taken(self):
        model = self.model()
        for command, more in (("run", ()), ("profile", ()), ("plan", ()), ("trace", ()), ("inspect", ("--kernels",)),
                              ("report", ("-o", "page.html")), ("generate", ("--output", "sheet.png"))):
            text = self.help_of(command)
            for told, options in (("--batch=N[,N...]", ("--batch", "1,2")),
                                  ("--dtype=f32|tf32|f16|bf16[,...]", ("--dtype", "f32,f16")),
                                  ("--policy=NAME|all", ("--policy", "all"))):
                with self.subTest(command, options=options):
                    _, _, err = self.execute(command, model, "--device", "sim:none", *more, *options)
                    self.assertEqual("at a time" not in err and "of one policy" not in err, told in text, err)

    def test_examples_that_are_wrong_are_found(self):
        for words in (("run", "m.json", "--no-such-option"), ("run",), ("run", "m.json", "--batch", "x")):
            self.refused(self.execute("--parse-only", *words), harness.USAGE)

    def test_of_the_whole(self):
        out, _ = self.accepted(self.execute("--help"))
        for words in examples(out):
            self.accepted(self.execute("--parse-only", *words))
        for code in ("0", "1", "2", "3", "4", "129", "130", "143"):
            self.assertRegex(out, rf"(?m)^  {code} +\w")

    def test_pages(self):
        """A page for each command, with all of its options, its examples, and no complaint of groff's."""
        self.accepted(self.execute("--man-pages", "man/man1"))
        folder = self.folder / "man/man1"
        names = commands()
        self.assertEqual({path.name for path in folder.iterdir()},
                         {"convsched.1"} | {f"convsched-{name}.1" for name in names})
        harness.find_tool(self, "groff", "groff-base")
        main = self.page("convsched.1", folder)
        for name in names:
            with self.subTest(name):
                self.assertIn(f"convsched-{name}(1)", main)
                page, text = self.page(f"convsched-{name}.1", folder), self.help_of(name)
                options = set(re.findall(r"(?m)^ +(?:-., )?(--[a-z-]+)", text))
                self.assertGreaterEqual(len(options), 4)
                shown = set(re.findall(r"(?m)^ +(?:-.(?: \S+)?, )?(--[a-z-]+)", page.split("\nEXAMPLES")[0]))
                self.assertEqual(options, shown)
                self.assertEqual(examples(page.split("\nEXAMPLES")[1]), examples(text))
                for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "ENVIRONMENT", "FILES", "SEE ALSO"):
                    self.assertIn(f"\n{heading}\n", page)


if __name__ == "__main__":
    harness.main()
