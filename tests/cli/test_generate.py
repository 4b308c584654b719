"""`generate`: pictures from latent vectors, as PNG files that are decoded here and compared with what `run` computes."""
import ctypes
import math
import os
import signal
import statistics
import struct
import subprocess
import time
import unittest
import zlib

import harness
from harness import BAD_INPUT, FAILURE, OK, USAGE, CommandTest

WIDTH, HEIGHT = 10, 6
IN_ACCESS, IN_CREATE = 0x1, 0x100  # of inotify(7)


def generator(channels=3):
    return {"schema": "convsched.graph/1", "name": "generator",
            "inputs": [{"name": "z", "shape": ["N", 8, 1, 1], "dtype": "f32"}],
            "nodes": [{"name": "up", "op": "ConvTranspose", "inputs": ["z"],
                       "attrs": {"out_channels": channels, "kernel_shape": [HEIGHT, WIDTH], "bias": True}},
                      {"name": "tanh", "op": "Tanh", "inputs": ["up"]}],
            "outputs": ["tanh"]}


def chunks(data):
    """Of a PNG file, with every check sum checked."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at = 8
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at:at + 8])
        content = data[at + 8:at + 8 + length]
        (check,) = struct.unpack(">I", data[at + 8 + length:at + 12 + length])
        assert check == zlib.crc32(name + content), name
        yield name, content
        at += 12 + length


def unfilter(kind, row, above, step):
    row = bytearray(row)
    for i in range(len(row)):
        left = row[i - step] if i >= step else 0
        up = above[i]
        corner = above[i - step] if i >= step else 0
        guess = left + up - corner
        nearest = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[2]
        row[i] = (row[i] + (0, left, up, (left + up) // 2, nearest)[kind]) % 256
    return bytes(row)


def read_png(path):
    """width, height, channels and the rows of an 8-bit picture."""
    packed, head = b"", None
    for name, content in chunks(path.read_bytes()):
        if name == b"IHDR":
            head = struct.unpack(">IIBBBBB", content)
        elif name == b"IDAT":
            packed += content
    width, height, depth, colour, *rest = head
    assert depth == 8 and rest == [0, 0, 0], head
    channels = {0: 1, 2: 3}[colour]
    raw, rows, step = zlib.decompress(packed), [], width * channels
    assert len(raw) == height * (step + 1)
    above = bytes(step)
    for h in range(height):
        line = raw[h * (step + 1):(h + 1) * (step + 1)]
        above = unfilter(line[0], line[1:], above, channels)
        rows.append(above)
    return width, height, channels, rows


def single(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def pixel(x):
    """(x + 1) · 127.5 in f32, to nearest, half to even."""
    return max(0, min(255, round(single(single(x + 1) * 127.5))))


def tile(sheet, columns, index):
    """A picture of a sheet as rows."""
    _, _, channels, rows = sheet
    step, first = WIDTH * channels, index // columns * HEIGHT
    at = index % columns * step
    return [row[at:at + step] for row in rows[first:first + HEIGHT]]


class Generate(CommandTest):
    def generate(self, *args, model=None, **more):
        return self.execute("generate", model or self.file("generator.json", generator()), "--device", "cpu", "--quiet",
                            *args, **more)

    def latents(self, count, name="z.npy", shape=None):
        values = [math.sin(i * i + 1) * 2 for i in range(8 * count)]
        return self.file(name, harness.npy(shape or (count, 8, 1, 1), values))

    def computed(self, count, channels=3):
        """What `run` gives for the same latent vectors, as pictures of rows."""
        model = self.file("generator.json", generator(channels))
        self.accepted(self.execute("run", model, "--device", "cpu", "--batch", str(count), "--input",
                                   self.latents(count), "--output", "out.npy", "--policy", "sequential", "--samples",
                                   "1", "--quiet", "--verify", "none"))
        shape, values = harness.read_npy(self.folder / "out.npy")
        self.assertEqual(tuple(shape), (count, channels, HEIGHT, WIDTH))
        value = lambda n, c, h, w: values[((n * channels + c) * HEIGHT + h) * WIDTH + w]
        return [[bytes(pixel(value(n, c, h, w)) for w in range(WIDTH) for c in range(channels)) for h in range(HEIGHT)]
                for n in range(count)]

    def close_to(self, found, wanted):
        """Candidates of other batches may round the last bit otherwise: then a pixel is one more or less."""
        for a, b in zip(found, wanted, strict=True):
            self.assertEqual(len(a), len(b))
            self.assertLessEqual(max(abs(x - y) for x, y in zip(a, b)), 1)

    def test_a_sheet_has_every_picture_in_its_place(self):
        wanted = self.computed(7)
        for batch in (1, 3, 7, 20):
            for columns in (1, 3, 7):
                with self.subTest(batch=batch, columns=columns):
                    self.accepted(self.generate("--latents", self.latents(7), "--output", "sheet.png", "--batch",
                                                str(batch), "--columns", str(columns), "--force"))
                    sheet = read_png(self.folder / "sheet.png")
                    rows = -(-7 // columns)
                    self.assertEqual(sheet[:3], (columns * WIDTH, rows * HEIGHT, 3))
                    for i in range(7):
                        self.close_to(tile(sheet, columns, i), wanted[i])
                    for i in range(7, rows * columns):
                        self.assertEqual(tile(sheet, columns, i), [bytes(3 * WIDTH)] * HEIGHT)

    def test_a_file_each(self):
        wanted = self.computed(5, channels=1)
        model = self.file("generator.json", generator(1))
        out, _ = self.accepted(self.generate("--latents", self.latents(5), "--output", "faces/", "--batch", "2",
                                             model=model))
        self.assertIn("5 pictures of 10x6", out)
        self.assertEqual(sorted(os.listdir(self.folder / "faces")), [f"{i:06}.png" for i in range(5)])
        for i in range(5):
            width, height, channels, rows = read_png(self.folder / f"faces/{i:06}.png")
            self.assertEqual((width, height, channels), (WIDTH, HEIGHT, 1))
            self.close_to(rows, wanted[i])

    def test_a_seed_is_the_same_pictures_in_any_batch(self):
        sheets = []
        for batch in (1, 4, 9):
            self.accepted(self.generate("--count", "9", "--seed", "7", "--batch", str(batch), "--output",
                                        f"{batch}.png", "--columns", "3"))
            sheets.append(read_png(self.folder / f"{batch}.png"))
        self.assertEqual(sheets[0][:3], (3 * WIDTH, 3 * HEIGHT, 3))
        for other in sheets[1:]:
            for i in range(9):
                self.close_to(tile(other, 3, i), tile(sheets[0], 3, i))
        self.assertEqual(len({bytes().join(tile(sheets[0], 3, i)) for i in range(9)}), 9)

    def test_latents_without_their_axes_of_one(self):
        for shape in ((3, 8), (3, 8, 1)):
            self.accepted(self.generate("--latents", self.latents(3, shape=shape), "--output", "a.png", "--force"))

    def test_fewer_than_the_file_has(self):
        self.accepted(self.generate("--latents", self.latents(9), "--count", "4", "--columns", "2", "--output", "a.png"))
        self.assertEqual(read_png(self.folder / "a.png")[:2], (2 * WIDTH, 2 * HEIGHT))

    def test_wrong_latents(self):
        out = ("--output", "a.png")
        for shape, found in (((8, 3), "8x3"), ((3, 8, 1, 2), "3x8x1x2"), ((24,), "24"), ((3, 8, 1, 1, 1), "3x8x1x1x1"),
                             ((0, 8), "no vectors")):
            values = [0.0] * harness.elements(shape)
            path = self.file("z.npy", harness.npy(shape, values))
            self.refused(self.generate("--latents", path, *out), BAD_INPUT, "z.npy", found)
        self.refused(self.generate("--latents", self.latents(3), "--count", "4", *out), BAD_INPUT, "3 vectors",
                     "--count wants 4")
        self.refused(self.generate("--latents", "absent.npy", *out), FAILURE, "absent.npy")
        whole = (self.folder / "z.npy").read_bytes()
        self.refused(self.generate("--latents", self.file("cut.npy", whole[:-5]), *out), BAD_INPUT, "cut.npy", "bytes")
        self.refused(self.generate("--latents", self.file("long.npy", whole + b"1234"), *out), BAD_INPUT, "long.npy")
        self.refused(self.generate("--latents", self.file("no.npy", b"hello"), *out), BAD_INPUT, "no.npy")
        for value, found in ((math.nan, "nan"), (-math.inf, "-inf")):
            values = [0.5] * 24
            values[17] = value
            path = self.file("z.npy", harness.npy((3, 8), values))
            self.refused(self.generate("--latents", path, "--batch", "2", *out), BAD_INPUT,
                         f"vector 2 holds {found}, wanted finite numbers")
        self.refused(self.generate("--count", str(2**40 + 1), *out), USAGE, f"wanted a whole number from 1 to {2**40}")
        self.assertFalse((self.folder / "a.png").exists())

    def test_refused_before_any_work(self):
        model = self.file("generator.json", generator())
        there = self.file("there.png", b"mine")
        self.refused(self.generate("--count", "0", "--output", "a.png"), USAGE, "count")
        self.refused(self.generate("--count", "3"), USAGE, "--output FILE is missing")
        self.refused(self.generate("--output", there), USAGE, "there already", "--force")
        self.assertEqual((self.folder / "there.png").read_bytes(), b"mine")
        self.refused(self.generate("--output", "absent/a.png"), FAILURE, "absent")
        self.refused(self.generate("--output", "/proc/a.png"), FAILURE, "/proc/a.png")
        (self.folder / "faces").mkdir()
        self.file("faces/000002.png", b"mine")
        self.refused(self.generate("--count", "4", "--output", "faces"), USAGE, "000002.png", "--force")
        self.refused(self.generate("--output", model, "--force"), USAGE, "generator.json")
        self.refused(self.generate("--output", "new/", "--columns", "3"), USAGE, "--columns 3", "the folder new/")
        self.assertFalse((self.folder / "new").exists())
        for name in ("a.jpg", "a.png.jpeg", "a", ".png", "faces.tiff", "png"):
            self.refused(self.generate("--output", name, "--cache", "new"), USAGE, f"--output {name}", "FILE.png",
                         "FOLDER/")
            self.assertFalse((self.folder / name).exists())
        self.assertFalse((self.folder / "new").exists(), "measured before the name was looked at")
        latents = self.latents(3)
        self.refused(self.generate("--latents", latents, "--output", latents, "--force"), USAGE, "z.npy")

    def test_any_case_of_its_ending(self):
        self.accepted(self.generate("--count", "2", "--output", "A.PNG"))
        self.assertEqual(read_png(self.folder / "A.PNG")[:2], (2 * WIDTH, HEIGHT))

    def test_more_pixels_than_a_png_has(self):
        """Refused before anything is measured: 2^31 - 1 a side, of three channels a third of that across."""
        most = 2 ** 31 - 1
        for count, columns, found in ((most // HEIGHT + 1, 1, f"{WIDTH}x{(most // HEIGHT + 1) * HEIGHT}"),
                                      (most, most, f"{WIDTH * most}x{HEIGHT}"), (1 << 40, 1, f"{WIDTH}x{HEIGHT << 40}")):
            self.refused(self.generate("--count", str(count), "--columns", str(columns), "--output", "a.png", "--cache",
                                       "new"), USAGE, "a.png", found, f"{most // 3}x{most}")
        self.assertFalse((self.folder / "new").exists(), "measured before the sheet was looked at")
        self.assertEqual([path.name for path in self.folder.glob("a.png*")], [])

    def test_pictures_that_are_there_before_anything_is_measured(self):
        (self.folder / "faces").mkdir()
        self.file("faces/000063.png", b"mine")  # the last of the default count
        self.refused(self.generate("--output", "faces", "--cache", "new"), USAGE, "000063.png", "--force")
        self.assertFalse((self.folder / "new").exists())

    def test_what_killed_processes_left(self):
        ended = subprocess.Popen(["true"])
        ended.wait()
        (self.folder / "faces").mkdir()
        for name in ("000000.png", "000002.png", "000003.png", "other.png"):
            self.file(f"faces/{name}.tmp.{ended.pid}", b"x")
        self.file(f"faces/000001.png.tmp.{os.getpid()}", b"x")
        self.accepted(self.generate("--count", "3", "--output", "faces"))
        self.assertEqual(sorted(os.listdir(self.folder / "faces")),
                         ["000000.png", "000001.png", f"000001.png.tmp.{os.getpid()}", "000002.png",
                          f"000003.png.tmp.{ended.pid}", f"other.png.tmp.{ended.pid}"])

    def folder_reads(self, path, *args):
        """How often a folder's entries were read while pictures were generated into it."""
        libc, read = ctypes.CDLL(None, use_errno=True), 0
        watch = libc.inotify_init1(os.O_NONBLOCK)
        self.addCleanup(os.close, watch)
        self.assertGreaterEqual(libc.inotify_add_watch(watch, os.fsencode(path), IN_ACCESS | IN_CREATE), 0)
        self.accepted(self.generate(*args, "--output", path))
        events = os.read(watch, 1 << 24)
        while events:
            _, mask, _, length = struct.unpack("iIII", events[:16])
            read += bool(mask & IN_ACCESS)
            events = events[16 + length:]
        return read

    def test_a_folder_is_read_a_few_times_however_many_pictures_there_are(self):
        reads = []
        for count in (20, 200):
            (self.folder / str(count)).mkdir()
            reads.append(self.folder_reads(self.folder / str(count), "--count", str(count)))
        self.assertGreater(reads[0], 0)
        self.assertLess(max(reads), 10)

    def test_one_file_for_two_things(self):
        for output, record in (("a.png", "a.png"), ("a.png", "./a.png"), ("./a.png", self.folder / "a.png")):
            self.refused(self.generate("--count", "2", "--output", output, "--json", record), USAGE, "a.png", "--output, too")
        self.assertFalse((self.folder / "a.png").exists())

    def test_more_pictures_than_a_folder_is_asked_about(self):
        (self.folder / "faces").mkdir()
        for other in ("1.png", "-00001.png", "0000001.png", "000001.png.tmp", "9999999999999999999999.png"):
            self.file(f"faces/{other}", b"mine")
        self.accepted(self.generate("--count", "3", "--output", "faces"))
        self.file("faces/1000000000.png", b"mine")
        for i in range(3):
            (self.folder / f"faces/{i:06}.png").unlink()
        self.refused(self.generate("--count", str(1 << 40), "--output", "faces", timeout=20), USAGE, "1000000000.png",
                     "--force")

    def test_names_that_are_not_utf8(self):
        name = os.fsdecode(b"b\xff.png")
        self.accepted(self.generate("--count", "2", "--output", name, "--json", "record.json",
                                    errors="surrogateescape"))
        self.assertEqual(harness.json.loads((self.folder / "record.json").read_text())["output"], "b?.png")
        self.assertTrue((self.folder / name).exists())

    @unittest.skipIf(harness.SHORT, "a sanitizer opens files of its own, which the end forbids")
    def test_ended_while_files_are_written(self):
        """The deadline of Ctrl-C comes while the thread that writes is in the middle of thousands of files."""
        for i in range(8):
            out = f"faces{i}"
            process = self.start("generate", self.file("generator.json", generator()), "--device", "cpu", "--quiet",
                                 "--count", "20000", "--batch", "2000", "--output", f"{out}/")
            end = time.monotonic() + 60
            while time.monotonic() < end and not (self.folder / out / "000009.png").exists():
                time.sleep(0.001)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, harness.INTERRUPTED)
            left = os.listdir(self.folder / out)
            self.assertGreater(len(left), 9)
            self.assertEqual([name for name in left if ".tmp." in name], [])

    def test_what_is_no_generator(self):
        tiny = self.file("tiny.json", harness.TINY)
        self.refused(self.generate("--output", "a.png", "--cache", "new", model=tiny), BAD_INPUT, "wanted pictures")
        self.assertFalse((self.folder / "new").exists(), "measured before the graph was looked at")
        two = generator()
        two["outputs"] = ["up", "tanh"]
        self.refused(self.generate("--output", "a.png", model=self.file("two.json", two)), BAD_INPUT, "2 outputs",
                     "wanted a generator")

    @unittest.skipIf(harness.SHORT, "a sanitizer has memory of its own")
    def test_more_pictures_than_memory(self):
        """Of 72 MB of pixels no more is in memory than of a few requests."""
        def peak(count, path):
            # ru_maxrss of the child alone.
            code = ("import resource, subprocess, sys; done = subprocess.run(sys.argv[1:]);"
                    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(done.returncode)")
            args = [harness.COMMAND, "generate", self.file("generator.json", generator()), "--device", "cpu", "--quiet",
                    "--count", str(count), "--batch", "512", "--output", path, "--json", "record.json"]
            done = subprocess.run(["python3", "-c", code, *args], cwd=self.folder, env=self.env, check=True,
                                  capture_output=True, text=True)
            return int(done.stdout.splitlines()[-1]) * 1024
        few, many = peak(512, "few.png"), peak(400000, "many.png")
        size = (self.folder / "many.png").stat().st_size
        self.assertGreater(400000 * WIDTH * HEIGHT * 3, 70e6)
        self.assertGreater(size, 10e6)
        self.assertLess(many - few, 30e6)

    def test_a_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        code, _, err = self.generate("--count", "3", "--output", "/dev/full")
        self.assertEqual(code, FAILURE, err)
        self.assertIn("No space left", err)

    def test_record_and_times(self):
        out, _ = self.accepted(self.generate("--count", "6", "--batch", "2", "--output", "a.png", "--time", "--json",
                                             "record.json"))
        self.assertIn("Steady state, 6 pictures in requests of 2", out)
        record = harness.json.loads((self.folder / "record.json").read_text())
        self.assertEqual((record["schema"], record["count"], record["batch"]), ("convsched.generate/1", 6, 2))
        self.assertEqual((record["dtype"], record["policy"]), ("f32", "streams"))
        self.assertIn("--count 6", record["command"])
        self.assertTrue(record["commit"])
        self.assertEqual(record["device"]["backend"], "cpu")
        for what, median in (("compute", record["compute_ms"]), ("with_copies", record["with_copies_ms"])):
            self.assertEqual(statistics.median(record["samples_ms"][what]), median)
            self.assertGreater(min(record["samples_ms"][what]), 0)
        self.assertGreater(record["roofline_ms"], 0)
        ratio = record["compute_ms"] / record["roofline_ms"]
        self.assertIn(f"{ratio:.2f} times its roofline of {record['roofline_ms']:.3f} ms", out)
        self.assertGreaterEqual(record["wall_s"], 0)


if __name__ == "__main__":
    harness.main()
