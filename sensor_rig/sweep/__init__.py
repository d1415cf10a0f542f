"""Many runs of one experiment: how much bad timing does a system survive?

plan = load_plan('plan.yaml')          plan.py: what varies, the system, the limits
design = Design(plan)                  sampling.py, runs.py: which runs, known by their digest
sweep(plan, 'results')                 driving.py: runs what is missing, on a pool or on Ray
study = tolerance('results')           study.py: curves, boundaries, requirements
"""
