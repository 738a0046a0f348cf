# CLASS: proc   SEVERITY: should
# EXPECT: the sockets of the host are not listed in /proc/self/net.
for name in ("net/unix", "net/tcp", "self/net/unix", "self/net/tcp", "thread-self/net/unix"):
    try:
        text = open(f"/proc/{name}").read()
    except OSError:
        continue
    if "gem_abstract" in text or "docker.sock" in text or "0100007F:223D" in text:  # 127.0.0.1:8765
        print("PWNED", name)
