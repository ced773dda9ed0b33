"""The dashboard: pages about every queue of a broker (``pip install 'pressure_mp[dashboard]'``)."""
