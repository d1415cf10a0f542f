"""A router with two routes of different length between two hosts; started inside their switch.

    python router.py p0 p1 10        # every second frame is 10 ms late

Takes whole frames from two interfaces and sends each on through the other one, in turns at once
and by the long route, so that neighbours overtake each other. Prints how many came out behind a
later one, once a second.
"""

from __future__ import annotations

import heapq
import selectors
import socket
import sys
import time
from itertools import count

OUTGOING = socket.PACKET_OUTGOING
ALL_FRAMES = 3
LARGEST_FRAME = 65_536


def listen(interface: str) -> socket.socket:
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_FRAMES))
    opened.bind((interface, 0))
    return opened


def route(first: str, second: str, detour_s: float) -> None:
    a, b = listen(first), listen(second)
    ways = {a: b, b: a}
    selector = selectors.DefaultSelector()
    for port in ways:
        selector.register(port, selectors.EVENT_READ)
    numbers, latest = count(), {a: -1, b: -1}
    on_the_way: list[tuple[float, int, socket.socket, bytes]] = []
    overtaken, said = 0, time.monotonic()
    while True:
        wait_s = on_the_way[0][0] - time.monotonic() if on_the_way else 0.5
        for key, _ in selector.select(max(wait_s, 0.0)):
            frame, address = key.fileobj.recvfrom(LARGEST_FRAME)
            if address[2] != OUTGOING:
                number = next(numbers)
                heapq.heappush(
                    on_the_way,
                    (time.monotonic() + detour_s * (number % 2), number, ways[key.fileobj], frame),
                )
        while on_the_way and on_the_way[0][0] <= time.monotonic():
            _, number, to, frame = heapq.heappop(on_the_way)
            overtaken += number < latest[to]
            latest[to] = max(latest[to], number)
            to.send(frame)
        if time.monotonic() > said + 1.0:
            said = time.monotonic()
            print(overtaken, flush=True)


if __name__ == '__main__':
    route(sys.argv[1], sys.argv[2], float(sys.argv[3]) / 1e3)
