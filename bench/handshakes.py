#!/usr/bin/env python3
"""CPU time of TLS 1.3 handshakes with a P-256 certificate, relative to OpenSSL alone. The demo server and a ceiling, a
server that is OpenSSL over memory BIOs and parses nothing, are on one core; a load on another core makes HANDSHAKES with
each in turns: ceiling, server, ceiling. 32 handshakes are in progress at a time, and each is followed by one call. A
figure is the ratio of CPU time a handshake, server / ceiling, the median of the rounds. Beside it stand the ceiling's own
time and, in brackets, the ratio of the ceiling's two turns: far from 1 the machine was not quiet. Exits with 1 when a
bound is exceeded.

    full       each connection makes a full handshake
    resumed    each connection resumes a session by the last ticket that the server has issued

    handshakes.py [WIRECALL] [PROGRAMS] [--only NAME] [--engine epoll|uring] [--rounds N] [--handshakes N]
"""

import sys
import tempfile

import harness

BOUNDS = {"full": 1.10, "resumed": 1.25}
AT_ONCE = 32
REQUEST = '{"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1}'
ANSWER = '{"jsonrpc":"2.0","result":19,"id":1}'


def main() -> int:
    parser = harness.arguments(__doc__)
    parser.add_argument("programs", nargs="?", default=str(harness.ROOT / "build" / "bench"))
    parser.add_argument("--only", choices=BOUNDS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--handshakes", type=int, default=2000)
    options = parser.parse_args()
    pinned = harness.two_cores()

    def measure(which: harness.ServerProcess, kind: str) -> float:
        """Microseconds of processor a handshake."""
        words = [f"{options.programs}/tls_load", str(which.port), kind, str(AT_ONCE), str(options.handshakes), REQUEST,
                 ANSWER]
        before = harness.processor_seconds(which.pid)
        handshakes = harness.told_by(words, 120)["handshakes"]
        return (harness.processor_seconds(which.pid) - before) / handshakes * 1e6

    with tempfile.TemporaryDirectory() as folder:
        cert, key = harness.certificate(folder)
        serve = harness.serve(options, "--demo", "--tls-cert", cert, "--tls-key", key)
        bare = [f"{options.programs}/tls_ceiling", cert, key, str(len(REQUEST) + 1), ANSWER]
        rows = []
        with harness.listening(pinned + serve) as server, harness.listening(pinned + bare) as ceiling:
            for kind in [options.only] if options.only else BOUNDS:
                rounds = harness.in_turns(options.rounds, lambda which: measure(which, kind), ceiling, server)
                rows.append(harness.beside(f"a {kind} handshake", "ceiling", "us", BOUNDS[kind], rounds))
                harness.report(rows[-1:])
    return 0 if all(figure <= bound for _, figure, bound in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
