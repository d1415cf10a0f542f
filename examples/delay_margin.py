"""A loop whose delay margin is known in closed form, as a system under test of `rig sweep`.

    ./rig sweep examples/delay_margin_sweep.yaml --out delay_margin && ./rig tolerance delay_margin
    ./rig python examples/delay_margin.py                # what theory says

A PD controller holds a mass on a rail: L(s) = (K + D s) / (M s^2). A delay T turns the phase by
-w T and leaves the size, so the loop is stable up to phase margin / crossover frequency. The
simulated loop is a sampled one: it reacts a tick later, which the exact margin of the sampled
system takes into account.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sensor_rig.inprocess import InProcessRig

MASS_KG, STIFFNESS_N_M, DAMPING_N_S_M = 1.0, 25.0, 5.0


def delay_margin_s() -> float:
    """Return the largest delay at which the loop is stable, s."""
    from scipy.optimize import brentq

    def loop(omega: float) -> complex:
        return complex(STIFFNESS_N_M, DAMPING_N_S_M * omega) / (-MASS_KG * omega**2)

    crossover = brentq(lambda omega: abs(loop(omega)) - 1.0, 0.1, 1000.0)
    phase = np.angle(loop(crossover)) % (2.0 * np.pi) - np.pi
    return float(phase / crossover)


def sampled_margin_s(step_s: float) -> float:
    """Return the same for a loop that is computed every `step_s` and acts at the next step."""
    low, high = 1, round(2.0 * delay_margin_s() / step_s)
    while high - low > 1:  # stable at low, not at high
        middle = (low + high) // 2
        low, high = (middle, high) if _radius(middle, step_s) < 1.0 else (low, middle)
    return (low - 1) * step_s


def _radius(steps: int, step_s: float) -> float:
    """Return the spectral radius of the loop with a delay of some steps.

    v' = v - step (K x + D u) / M, x' = x + step v', as MuJoCo integrates; x and u are of `steps`
    ago. The encoder says u, the velocity at the instant of x: the mean of v before and after.
    """
    system = np.eye(2 * steps + 2, k=-2)
    system[:2] = 0.0
    system[1, 1] = 1.0
    seen = np.array([DAMPING_N_S_M / 2.0, STIFFNESS_N_M, DAMPING_N_S_M / 2.0])
    system[1, -3:] -= seen * step_s / MASS_KG
    system[0] = step_s * system[1]
    system[0, 0] += 1.0
    return float(np.abs(np.linalg.eigvals(system)).max())


def run(rig: InProcessRig, seconds: float) -> dict[str, float]:
    """Close the loop on what the encoder delivers; return how much the swing grew."""
    places = []
    while rig.elapsed_ns < seconds * 1e9:
        rig.step()
        seen = rig.read('encoder')
        if seen.valid[0]:
            place_m, speed_m_s = seen.values[0, :2]
            rig.command({'push': -STIFFNESS_N_M * place_m - DAMPING_N_S_M * speed_m_s})
        places.append(float(rig.world.bound('qpos')[0, 0]))
    _, middle, last = np.array_split(np.abs(places), 3)  # the start still rings in other ways
    return {'growth': float(last.max() / middle.max())}


if __name__ == '__main__':
    print(
        f'stable up to {delay_margin_s() * 1e3:.1f} ms; sampled every millisecond, up to '
        f'{sampled_margin_s(0.001) * 1e3:.1f} ms'
    )
