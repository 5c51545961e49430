"""A program that asks several times and prints the answers: a function, or a command of the standard library.

Each request says the last answers, so a call that is lost, repeated or mixed up changes what follows. Between
two calls it works for a moment. Some episodes leave a process behind, which does not end by itself.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from typing import Any
from urllib.parse import urlsplit


def recite(task: dict[str, Any], base_url: str, api_key: str) -> list[str]:
    """The answers in order."""
    address, said = urlsplit(base_url), [str(task["start"])]
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=600)
    if task["leaves"]:
        subprocess.Popen(["sleep", "3600"], start_new_session=True, stdout=subprocess.DEVNULL)
    while len(said) <= task["calls"]:
        body = {"messages": [{"role": "user", "content": " ".join(said[-4:])}], "max_tokens": 1}
        headers = {"x-api-key": api_key, "content-type": "application/json"}
        connection.request("POST", f"{address.path}/chat/completions", json.dumps(body), headers)
        answer = connection.getresponse()
        content = json.loads(answer.read())["choices"][0]["message"]["content"]
        said.append(content or "stop")
        time.sleep(0.05)
    connection.close()
    return said[1:]


def verify(task: dict[str, Any], printed: str, folder: str, calls: list[Any]) -> bool:
    """Whether what was printed is what the calls of this episode were answered, each once."""
    answered = [call["content"] or "stop" for call in calls]
    return bool(json.loads(printed) == answered and len(answered) == task["calls"])


if __name__ == "__main__":
    given = json.loads(os.environ["SKILLPRESS_TASK"])
    print(json.dumps(recite(given, os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"])))
    sys.stdout.flush()
