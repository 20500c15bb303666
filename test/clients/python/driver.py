"""Drives a Kafka client library for the client matrix.

Carries out requests, one JSON object a line on standard input, and answers each with one line on standard output. The
arguments are the library (the name of a module beside this one) and the broker.

A library has the methods create, remove, list, offset_for_time, producer, consumer and copy; a producer has produce,
begin, end and close; a consumer has poll, commit and close.
"""
import importlib
import json
import logging
import sys
import traceback

POLL_WAIT = 0.3  # seconds that a poll waits for a first record
PATIENCE = 90  # seconds that bound one operation of a library


class Session:
    """What has been opened."""

    def __init__(self, library):
        self.library = library
        self.opened = {}

    def do(self, r):
        """Carries out a request and returns the answer."""
        what, one = r["do"], self.opened.get(r.get("id"))
        if what == "version":
            return {"version": self.library.version}
        if what == "create":
            self.library.create(r["topic"], r["partitions"])
        elif what == "delete":
            self.library.remove(r["topic"])
        elif what == "list":
            return {"topics": list(self.library.list())}
        elif what == "time":
            return {"offset": self.library.offset_for_time(r["topic"], r.get("time", 0))}
        elif what in ("producer", "consumer"):
            self.opened[r["id"]] = getattr(self.library, what)(r)
        elif what == "copy":
            self.library.copy(r)
        elif what == "produce":
            times = r.get("times") or [None] * len(r["values"])
            one.produce(r["topic"], r["partition"], [v.encode() for v in r["values"]], times)
        elif what == "begin":
            one.begin()
        elif what == "end":
            one.end(r.get("commit", False))
        elif what == "poll":
            records, assigned = one.poll()
            return {"records": records, "assigned": sorted(assigned)}
        elif what == "commit":
            one.commit(r.get("topic"), r.get("offset", 0))
        elif what == "close":
            self.opened.pop(r["id"]).close()
        else:
            raise ValueError("no such request")
        return {}


def seen(topic, partition, offset, value):
    """A record as it is answered."""
    return {"topic": topic, "partition": partition, "offset": offset, "value": value.decode()}


def main():
    """Answers until standard input ends."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    session = Session(importlib.import_module(sys.argv[1]).Library(sys.argv[2]))
    for line in sys.stdin:
        try:
            answer = session.do(json.loads(line))
        except Exception as e:  # any error is an answer
            traceback.print_exc()
            answer = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    import os

    os._exit(0)  # whatever threads a library still has
