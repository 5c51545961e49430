"""The page at the end of an experiment: one HTML file that needs no network.

``page.render_report`` draws a ``data.ReportData``. One experiment (one method, one seed) and an ablation
(methods x seeds) use the same page: results are grouped by method, and a method with several seeds shows
their mean and their range.
"""
