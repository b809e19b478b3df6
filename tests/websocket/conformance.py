#!/usr/bin/env python3
"""The cases of Autobahn's WebSocket suite, by PyPI's kosoku, against an echo on our framing, of either end. All have to
pass, and none by leniency ("non-strict"); what is informational says nothing of right and wrong."""
import argparse
import asyncio
import subprocess
import sys
from pathlib import Path

import environment

KOSOKU = "kosoku==0.1.0"
PASSED = {"OK", "INFORMATIONAL"}
# 9 are large messages, 12 and 13 a thousand compressed ones each: some of them, unless all are asked for.
MOST = ["1.*", "2.*", "3.*", "4.*", "5.*", "6.*", "7.*", "10.*"]
QUICK = ["9.1.1", "9.2.1", "9.3.1", "9.4.1", "9.7.1", "9.8.1"]
PACKED = ["12.*.1", "12.*.2", "12.*.3", "13.*.1"]
AT_ONCE = 4


def judge(results, end):
    wrong = [one for one in results if one.behavior.value not in PASSED or one.behavior_close.value not in PASSED]
    for one in wrong:
        print(f"{end}: case {one.case_id}: {one.behavior.value}, close {one.behavior_close.value}")
    print(f"{end}: {len(results) - len(wrong)} of {len(results)} cases passed", flush=True)
    return not wrong and len(results) > 200


async def server_end(echo, everything):
    import kosoku  # noqa: PLC0415

    process = subprocess.Popen([echo, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        port = int(process.stdout.readline())
        try:
            cases = None if everything else MOST + QUICK + PACKED
            results = await kosoku.run_fuzzingclient(f"ws://127.0.0.1:{port}", cases, None, concurrency=AT_ONCE)
        except kosoku.FailureError as failure:
            results = failure.results
    finally:
        process.stdin.close()
        process.wait()
    return judge(results, "server")


async def client_end(echo, everything):
    import kosoku  # noqa: PLC0415

    async def ask(server, path):
        done = await asyncio.create_subprocess_exec(echo, "connect", "127.0.0.1", str(server.port), path,
                                                    stdout=asyncio.subprocess.PIPE)
        out, _ = await done.communicate()
        return out.decode("latin-1").strip()

    try:
        cases = None if everything else MOST + QUICK + PACKED
        async with kosoku.run_fuzzingserver(cases, None, host="127.0.0.1", port=0) as server:
            free = asyncio.Semaphore(AT_ONCE)

            async def run(case):
                async with free:
                    await ask(server, f"/runCase?case={case}&agent=wirecall")

            await asyncio.gather(*(run(case) for case in range(1, int(await ask(server, "/getCaseCount")) + 1)))
            await ask(server, "/updateReports?agent=wirecall")
            results = await server.get_result()
    except kosoku.FailureError as failure:
        results = failure.results
    return judge(results, "client")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("echo", type=Path)
    parser.add_argument("--environment", type=Path, required=True)
    parser.add_argument("--all", action="store_true", help="those that take minutes as well")
    args = parser.parse_args()
    environment.run_in(args.environment, [KOSOKU])
    passed = [asyncio.run(end(args.echo, args.all)) for end in (server_end, client_end)]
    sys.exit(0 if all(passed) else 1)


if __name__ == "__main__":
    main()
