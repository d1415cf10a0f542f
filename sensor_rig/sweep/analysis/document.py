"""A study as JSON values (docs/sweep.md)."""

from __future__ import annotations

from dataclasses import asdict

from sensor_rig.sweep.analysis.binomial import interval
from sensor_rig.sweep.analysis.boundaries import FactorLevel
from sensor_rig.sweep.analysis.study import FactorLine, Study

VERSION = 1


def document(study: Study) -> dict[str, object]:
    """Return the study as JSON values."""
    return {
        'version': VERSION,
        'name': study.name,
        'title': study.plan.title or study.name,
        'runs': len(study.rows),
        'statuses': study.statuses,
        'good': sum(row.good for row in study.rows),
        'limits': list(study.plan.limits),
        'confidence': study.plan.confidence,
        'met': study.met,
        'requirements': [
            {
                **each.requirement.model_dump(),
                'confidence': each.confidence,
                'met': each.met,
                'says': each.says,
                'levels': [_level(level, each.confidence) for level in each.levels],
            }
            for each in study.verdicts
        ],
        'boundaries': [_line(line, study.plan.confidence) for line in study.lines],
        'curves': [
            {
                'factor': factor,
                'measure': measure,
                'points': [asdict(point) for point in study.curve(factor, measure)],
            }
            for factor in study.factors
            for measure in study.measures
        ],
        'indices': [asdict(each) for each in study.indices],
        'interactions': [asdict(each) for each in study.interactions],
    }


def _line(line: FactorLine, confidence: float) -> dict[str, object]:
    return {
        'factor': line.factor,
        'others': line.others,
        'levels': [_level(level, confidence) for level in line.levels],
        'boundaries': [{**asdict(each), 'middle': each.middle} for each in line.boundaries],
    }


def _level(level: FactorLevel, confidence: float) -> dict[str, object]:
    low, high = interval(level.good, level.runs, confidence)
    return {
        'value': level.value,
        'good': level.good,
        'runs': level.runs,
        'fraction': level.good / level.runs if level.runs else None,
        'low': low,
        'high': high,
    }
