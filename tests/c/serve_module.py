#!/usr/bin/env python3
"""Modules of the command: `wirecall serve --module PATH` serves their methods, and says why it does not.

usage: serve_module.py COMMAND FOLDER, with the modules that modules.c is given
"""

import subprocess
import sys
import tempfile
import unittest

COMMAND, FOLDER = sys.argv[1], sys.argv[2]
del sys.argv[1:]


class Serve(unittest.TestCase):
    def test_methods_of_a_module(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            uri = f"unix://{folder}/socket"
            arguments = [COMMAND, "serve", "--listen", uri, "--module", f"{FOLDER}/math.so"]
            with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as server:
                assert server.stderr is not None
                server.stderr.readline()  # it listens from then on
                called = subprocess.run(
                    [COMMAND, "call", "--url", uri, "math.add", "1", "2"], capture_output=True, text=True, check=False
                )
                server.terminate()
                server.communicate()
            self.assertEqual(called.stdout, "3\n", called.stderr)
            self.assertEqual(server.returncode, 0)

    def test_what_is_no_module(self) -> None:
        for path, why in (
            ("math.so", "slash"),
            (f"{FOLDER}/absent.so", "cannot be opened"),
            (f"{FOLDER}/none.so", "exports no wirecall_module"),
            (f"{FOLDER}/newer.so", "take a newer wirecall"),
            (f"{FOLDER}/fails.so", "rpc.add"),
        ):
            refused = subprocess.run(
                [COMMAND, "serve", "--port", "0", "--module", path], capture_output=True, text=True, check=False
            )
            self.assertEqual(refused.returncode, 2, path)
            self.assertIn(why, refused.stderr)


if __name__ == "__main__":
    unittest.main()
