"""What every page and picture is drawn with: SVG plots, the HTML page, colours, scan points."""
