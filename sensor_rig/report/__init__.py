"""Reports of a run: plain data, small SVG plots, one self-contained HTML file."""
