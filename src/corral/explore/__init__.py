"""A local page on which clusters and outliers change as sliders move.

``_session.py`` knows the rows, ``_save.py`` the files, ``_app.py`` what the page may
ask for, ``_guard.py`` who may ask, and ``_server.py`` when it starts and ends.
"""
