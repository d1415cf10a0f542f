"""How well `rig fit` does: on measured traces, and on streams whose timing is known.

    ./rig python -m bench.timing_fit proof FOLDER       traces perf_node-*.txt (or any two columns)
    ./rig python -m bench.timing_fit splits FOLDER      the same over eight splits of each trace
    ./rig python -m bench.timing_fit coverage [DRAWS]   how often 95 % intervals hold the truth
    ./rig python -m bench.timing_fit servo LOG          a log of ptp4l, phc2sys, pmc or chrony
    ./rig python -m bench.timing_fit cost               the demo, every sensor's latency correlated

`proof` leaves out the first 5 s of each trace, fits the first half, simulates it and compares with
the second half: two-sample KS at 1 % (median of 20 draws of the half's length), lag 1 within 0.12
and p99 minus median within 10 % (both from a simulation 100 times as long). The last is counted
twice: against the second half's own p99 minus median, and against its p99. Beside it stands how
far the two halves are apart. `early` is the error of median minus p1, in parts of p99 minus p1;
`later` is the root mean square error of the autocorrelation at lags 2 to 20. The fit is not chosen
by these two. `splits` swaps and shifts the halves and puts quarters together: nine
traces are few to choose a method by.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sensor_rig.fit.times import StreamTimes

SKIP_S, DRAWS, LONGER = 5.0, 20, 100
LAG, TAIL, KS, LAGS = 0.12, 0.10, 0.01, 20


def tail(x: Any) -> float:
    """Return p99 minus median."""
    return float(np.quantile(x, 0.99) - np.median(x))


def lag_one(x: Any) -> float:
    """Return the lag-1 correlation of runs in columns."""
    return float(np.corrcoef(x[:-1].ravel(), x[1:].ravel())[0, 1])


def early(x: Any) -> float:
    """Return median minus p1."""
    return float(np.median(x) - np.quantile(x, 0.01))


def later_lags(x: Any) -> Any:
    """Return the mean autocorrelation at lags 2 to LAGS of runs in columns."""
    from sensor_rig.fit.statistics import autocorrelation

    return np.mean([autocorrelation(run, LAGS)[2:] for run in x.T], axis=0)


Parts = tuple[Any, Any]
"""Which messages are fitted, and which they are compared with."""


def halves(count: int) -> Parts:
    """Return the first half and the second."""
    rows = np.arange(count)
    return rows[: count // 2], rows[count // 2 :]


def splits(count: int) -> list[Parts]:
    """Return eight ways to split a trace in two."""
    a, b, c, d = np.array_split(np.arange(count), 4)
    tenth = count // 10
    pairs = [
        halves(count),
        (np.arange(tenth, 5 * tenth), np.arange(5 * tenth, 9 * tenth)),
        (np.r_[a, c], np.r_[b, d]),
        (np.r_[a, d], np.r_[b, c]),
    ]
    return [pair for one, other in pairs for pair in ((one, other), (other, one))]


def compare(times: StreamTimes, parts: Parts) -> dict[str, Any]:
    """Return the figures of one trace."""
    from scipy import stats

    from sensor_rig.fit.fitting import fit_stream
    from sensor_rig.fit.simulating import simulated_latencies

    fit = fit_stream(times.rows(parts[0]))
    delays_s = (times.receive_ns - times.stamp_ns) / 1e9 + fit.offset_s
    first, second = (delays_s[part] for part in parts)
    runs = simulated_latencies(fit.config(), len(second), DRAWS + LONGER)
    draws, long = runs[:, :DRAWS].T, runs[:, DRAWS:]

    spread = float(np.ptp(np.quantile(second, [0.01, 0.99])))
    wanted = later_lags(second[:, None])

    def row(ks: float, lag: float, ends: float, sample: Any) -> dict[str, Any]:
        fine, apart = ks >= KS and abs(lag) <= LAG, ends - tail(second)
        relative, of_p99 = apart / tail(second), apart / float(np.quantile(second, 0.99))
        return {
            'ks': ks,
            'lag': lag,
            'tail': relative,
            'tail_p99': of_p99,
            'early': (early(sample) - early(second)) / spread,
            'later': float(np.sqrt(np.mean((later_lags(sample) - wanted) ** 2))),
            'strict': fine and abs(relative) <= TAIL,
            'loose': fine and abs(of_p99) <= TAIL,
        }

    assert fit.choice is not None
    return {
        'model': fit.choice.fitted.name,
        **row(
            float(np.median([stats.ks_2samp(draw, second).pvalue for draw in draws])),
            lag_one(long) - lag_one(second),
            tail(long),
            long,
        ),
        'halves': row(
            float(stats.ks_2samp(first, second).pvalue),
            lag_one(first) - lag_one(second),
            tail(first),
            first[:, None],
        ),
    }


def proof(folder: Path, ways: Callable[[int], list[Parts]]) -> None:
    """Print the figures of every trace of a folder, split in some `ways`."""
    from sensor_rig.fit.times import of_trace

    rows = []
    print(
        f'{"trace":42} {"model":13} {"KS p":>6} {"lag 1":>6} {"tail":>6} {"of p99":>6} '
        f'{"early":>6} {"later":>6}   halves: KS p, lag 1, tail, early, later'
    )
    for file in sorted(folder.glob('perf*.txt')) or sorted(folder.glob('*.txt')):
        times = of_trace(file).between(SKIP_S)
        for parts in ways(len(times)):
            row = compare(times, parts)
            rows.append(row)
            own = row['halves']
            print(
                f'{file.stem:42} {row["model"]:13} {row["ks"]:6.3f} {row["lag"]:+6.2f} '
                f'{row["tail"]:+6.0%} {row["tail_p99"]:+6.1%} '
                f'{row["early"]:+6.1%} {row["later"]:6.3f}   {own["ks"]:.3f} '
                f'{own["lag"]:+.2f} {own["tail"]:+.0%} {own["early"]:+.1%} {own["later"]:.3f}',
                flush=True,
            )
    for who, chosen in (('the models', rows), ('the halves', [row['halves'] for row in rows])):
        strict, loose = (sum(row[key] for row in chosen) for key in ('strict', 'loose'))
        print(
            f'{who} pass all three: {strict} of {len(rows)}, the tail against itself; '
            f'{loose} of {len(rows)}, the tail against p99'
        )


def coverage(draws: int, count: int = 800) -> None:
    """Print how often the stated intervals hold the true parameters."""
    from support.round_trips import CASES, estimates, recorded, truths

    from sensor_rig.fit.fitting import fit_stream

    for name in CASES:
        model = name if CASES[name]['latency']['model'] == name.partition('_')[0] else 'normal'
        true = truths(name)
        hits = dict.fromkeys(true, 0)
        for seed in range(draws):
            found = estimates(fit_stream(recorded(CASES[name], count, seed), model=model))
            for key in hits:
                hits[key] += found[key].low <= true[key] <= found[key].high
        print(
            f'{name:15}',
            '  '.join(f'{key} {100 * hit / draws:.1f} %' for key, hit in hits.items()),
            flush=True,
        )


def servo(log: Path) -> None:
    """Fit the first half of a log of corrections, and compare the second with a simulation."""
    from support.transits import stamps, transit

    from sensor_rig.fit.servo import Corrections, fit_servo, read_log
    from sensor_rig.fit.statistics import autocorrelation

    whole = read_log(log)
    if whole is None:
        raise SystemExit(f'{log} is no log of corrections')
    middle = len(whole.offset_s) // 2
    fit = fit_servo(Corrections('first half', whole.time_s[5:middle], whole.offset_s[5:middle]))
    made = transit({'clock': {'servo': fit.keys()}}, 50, rate_hz=1.0 / fit.period_s, seed=1)
    count = 10 * middle
    errors = stamps(made, range(count)) - made.schedule.times_of(np.arange(count))[:, None]
    rows = {
        'first half': autocorrelation(whole.offset_s[5:middle], LAGS),
        'second half': autocorrelation(whole.offset_s[middle:], LAGS),
        'simulated': np.mean(
            [autocorrelation(run.astype(float), LAGS) for run in errors.T], axis=0
        ),
    }
    print(
        f'order {len(fit.correlations)}, every {fit.period_s:.3g} s; correlation at lag 1, 2, ...'
    )
    for name, row in rows.items():
        print(f'{name:12}', ' '.join(f'{each:+.2f}' for each in row[1:11]))
    for name in ('first half', 'simulated'):
        off = float(np.sqrt(np.mean((rows[name] - rows['second half'])[1:] ** 2)))
        print(f'{name} against the second half, root mean square over {LAGS} lags: {off:.3f}')


def cost(turns: int = 12, steps: int = 1500) -> None:
    """Print the CPU time of the demo without its camera, with and without correlated latency."""
    from dataclasses import replace
    from time import process_time

    from sensor_rig.inprocess import InProcessRig
    from sensor_rig.rigfile import load_rig
    from sim_sensors.timing.latency_config import LatencyConfig

    plain = load_rig('demo')
    plain = replace(
        plain,
        sync=None,
        sensors={name: each for name, each in plain.sensors.items() if each.type != 'camera'},
    )
    latency = LatencyConfig(
        model='gamma', min_s=0.002, mean_s=0.004, sigma_s=0.001, correlation=0.5
    )
    drawn = replace(
        plain,
        sensors={
            name: each.model_copy(update={'jitter_s': 0.0, 'latency': latency})
            for name, each in plain.sensors.items()
        },
    )
    rigs = [InProcessRig(config, arrays=False) for config in (plain, drawn)]
    ratios = []
    for turn in range(turns + 2):
        spent = []
        for rig in rigs:
            start = process_time()
            for _ in range(steps):
                rig.step()
            spent.append(process_time() - start)
        if turn >= 2:
            ratios.append(spent[0] / spent[1])
    print(
        f'real-time factor with correlated latency: {np.median(ratios):.3f} of that without '
        f'({min(ratios):.3f} to {max(ratios):.3f} over {turns} turns)'
    )


def main(argv: list[str]) -> int:
    """Run one of them."""
    if len(argv) == 2 and argv[0] in ('proof', 'splits'):
        proof(Path(argv[1]), splits if argv[0] == 'splits' else lambda count: [halves(count)])
    elif argv[:1] == ['coverage'] and len(argv) <= 2:
        coverage(int(argv[1]) if len(argv) == 2 else 200)
    elif len(argv) == 2 and argv[0] == 'servo':
        servo(Path(argv[1]))
    elif argv == ['cost']:
        cost()
    else:
        print(__doc__)
        return 2
    return 0


if __name__ == '__main__':
    raise SystemExit(main(sys.argv[1:]))
