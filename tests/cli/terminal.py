"""A command on a terminal of its own (Linux): what it writes there, and how fast a key ends it."""
import fcntl
import os
import pty
import select
import struct
import termios
import time


class Terminal:
    """Starts `args` in `folder` with stderr, stdin and (unless `stdout` is a file) stdout on a new terminal."""

    def __init__(self, args, folder, env, columns=80, stdout=None):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.written = b""
        self.code = None
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
                for fd in (0, 1, 2):
                    os.dup2(stdout.fileno() if fd == 1 and stdout else slave, fd)
                os.chdir(folder)
                os.closerange(3, 256)
                os.execve(args[0], [str(arg) for arg in args], env)
            finally:
                os._exit(127)
        os.close(slave)

    def read(self, seconds):
        """Reads for so long, or until the command ends; returns whether it did."""
        end = time.monotonic() + seconds
        while self.code is None:
            ready, _, _ = select.select([self.master], [], [], max(0, min(0.005, end - time.monotonic())))
            if ready:
                self._take()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
                while select.select([self.master], [], [], 0)[0] and self._take():
                    pass
            elif time.monotonic() >= end:
                return False
        return True

    def _take(self):
        try:
            data = os.read(self.master, 65536)
        except OSError:  # the last one who had it open has gone
            return False
        self.written += data
        return bool(data)

    def key(self, code):
        os.write(self.master, code)

    def close(self):
        if self.code is None:
            os.kill(self.pid, 9)
            os.waitpid(self.pid, 0)
        os.close(self.master)


def screen(written, columns):
    """The lines that a terminal shows of such output, and the cursor's column; any other control is an error."""
    lines, row, column, text, at = [""], 0, 0, written.decode(), 0
    while at < len(text):
        if text.startswith("\033[K", at):
            lines[row] = lines[row][:column]
            at += 3
            continue
        c = text[at]
        at += 1
        if c == "\r":
            column = 0
        elif c == "\n":
            row += 1
            lines.append("")
        else:
            assert c >= " ", f"control {c!r}"
            if column == columns:
                row, column = row + 1, 0
                lines.append("")
            lines[row] = lines[row][:column].ljust(column) + c + lines[row][column + 1:]
            column += 1
    return lines, column
