"""Pages that are made of records."""
import json
import subprocess
import sys

from harness import OK, ROOT, CommandTest


class PageTest(CommandTest):
    script = ""  # below ROOT; takes --pictures FOLDER and the folder of the records

    def page(self, **files):
        """Text and {name: SVG} of the files' records."""
        for name, found in files.items():
            path = self.folder / f"{name.replace('_', '-')}.jsonl"
            path.write_text("".join(json.dumps(r) + "\n" for r in found))
        pictures = self.folder / "pictures"
        done = subprocess.run([sys.executable, ROOT / self.script, "--pictures", pictures, self.folder],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (OK, ""))
        return done.stdout, {p.name: p.read_text(encoding="utf-8") for p in pictures.glob("*")}

    def rows(self, text, start):
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()
                if line.startswith(start)]
