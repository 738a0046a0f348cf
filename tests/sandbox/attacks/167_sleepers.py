# CLASS: starvation   SEVERITY: must   COPIES: 10   TIMEOUT: 2
# EXPECT: programs that only wait until their limit keep honest ones waiting, but make none fail.
import time

time.sleep(60)
