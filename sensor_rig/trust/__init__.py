"""May the offsets of a recording be believed? Scored on the recording itself, without a truth.

report = trust_recording('drive/', config)       # what `rig trust` prints
report.verdict, report.holds, report.document()
"""
