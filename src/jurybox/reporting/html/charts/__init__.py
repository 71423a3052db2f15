"""Charts as SVG, drawn without a script.

Each is an image with a title and a description that has its numbers in words. Colours come from the
page's style sheet by classes, so that a chart follows its reader into the dark.
"""

from jurybox.reporting.html.charts.bars import bar, shares
from jurybox.reporting.html.charts.gauge import gauge_chart
from jurybox.reporting.html.charts.histogram import histogram
from jurybox.reporting.html.charts.whisker import whisker

__all__ = ["bar", "gauge_chart", "histogram", "shares", "whisker"]
