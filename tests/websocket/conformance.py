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
# Compression, which our client does not ask for.
LEFT_OUT = ["12.*", "13.*"]


def judge(results, end):
    wrong = [one for one in results if one.behavior.value not in PASSED or one.behavior_close.value not in PASSED]
    for one in wrong:
        print(f"{end}: case {one.case_id}: {one.behavior.value}, close {one.behavior_close.value}")
    print(f"{end}: {len(results) - len(wrong)} of {len(results)} cases passed")
    return not wrong and len(results) > 200


def results_of(failure_or_results):
    return getattr(failure_or_results, "results", failure_or_results)


async def server_end(echo):
    import kosoku  # noqa: PLC0415

    process = subprocess.Popen([echo, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        port = int(process.stdout.readline())
        try:
            results = await kosoku.run_fuzzingclient(f"ws://127.0.0.1:{port}", None, None, concurrency=4)
        except kosoku.FailureError as failure:
            results = failure.results
    finally:
        process.stdin.close()
        process.wait()
    return judge(results, "server")


async def client_end(echo):
    import kosoku  # noqa: PLC0415

    async def ask(server, path):
        done = await asyncio.create_subprocess_exec(echo, "connect", "127.0.0.1", str(server.port), path,
                                                    stdout=asyncio.subprocess.PIPE)
        out, _ = await done.communicate()
        return out.decode("utf-8", "replace").strip()

    try:
        async with kosoku.run_fuzzingserver(None, LEFT_OUT, host="127.0.0.1", port=0) as server:
            for case in range(1, int(await ask(server, "/getCaseCount")) + 1):
                await ask(server, f"/runCase?case={case}&agent=wirecall")
            await ask(server, "/updateReports?agent=wirecall")
            results = await server.get_result()
    except kosoku.FailureError as failure:
        results = failure.results
    return judge(results, "client")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("echo", type=Path)
    parser.add_argument("--environment", type=Path, required=True)
    args = parser.parse_args()
    environment.run_in(args.environment, [KOSOKU])
    passed = [asyncio.run(end(args.echo)) for end in (server_end, client_end)]
    sys.exit(0 if all(passed) else 1)


if __name__ == "__main__":
    main()
