package demohost

import (
	"slices"
	"strings"
	"time"
)

func uname(c *call) int {
	f, _, ok := c.parse("asnrvmpio", "all=a kernel-name=s nodename=n kernel-release=r machine=m operating-system=o")
	if !ok {
		return 1
	}
	var parts []string
	for _, p := range []struct{ letter, is string }{{"s", "Linux"}, {"n", hostname}, {"r", kernel},
		{"v", "#1 SMP simulated"},
		{"m", "x86_64"}, {"o", "GNU/Linux"}} {
		if f.has(p.letter) || f.has("a") {
			parts = append(parts, p.is)
		}
	}
	if len(parts) == 0 {
		parts = []string{"Linux"}
	}
	c.printf("%s\n", strings.Join(parts, " "))
	return 0
}

// prints returns a program that only prints this text.
func prints(text string) func(*call) int {
	return func(c *call) int {
		c.printf("%s", text)
		return 0
	}
}

func identity(c *call) int {
	f, _, ok := c.parse("ugGnr", "user=u group=g groups=G name=n")
	switch {
	case !ok:
		return 1
	case f.has("n"):
		c.printf("root\n")
	case f.has("ugG"):
		c.printf("0\n")
	default:
		c.printf("uid=0(root) gid=0(root) groups=0(root)\n")
	}
	return 0
}

func who(c *call) int {
	c.printf("root     pts/0        %s (127.0.0.1)\n", c.now().Format("2006-01-02 15:04"))
	return 0
}

func hostName(c *call) int {
	switch {
	case len(c.args) == 0 || slices.Contains([]string{"-s", "-f", "--fqdn", "--short"}, c.args[0]):
		c.printf("%s\n", hostname)
	case c.args[0] == "-I" || c.args[0] == "-i":
		c.printf("10.0.2.15\n")
	default:
		return c.fail(1, "the name of this machine stays")
	}
	return 0
}

func hostnamectl(c *call) int {
	c.printf(" Static hostname: %s\nOperating System: Demo GNU/Linux 1 (simulated)\n          Kernel: Linux %s\n"+
		"    Architecture: x86-64\n", hostname, kernel)
	return 0
}

var dateWords = strings.NewReplacer("%Y", "2006", "%m", "01", "%d", "02", "%H", "15", "%M", "04", "%S", "05", "%F",
	"2006-01-02",
	"%T", "15:04:05", "%z", "-0700", "%Z", "MST", "%a", "Mon", "%b", "Jan", "%A", "Monday", "%B", "January", "%y", "06",
	"%%", "%")

func date(c *call) int {
	f, words, ok := c.parse("uRI", "utc=u iso-8601=I rfc-email=R")
	if !ok {
		return 1
	}
	now := c.now()
	if f.has("u") {
		now = now.UTC()
	}
	switch {
	case len(words) > 0 && !strings.HasPrefix(words[0], "+"):
		return c.fail(1, "cannot set date: Operation not permitted")
	case len(words) > 0 && words[0] == "+%s":
		c.printf("%d\n", now.Unix())
	case len(words) > 0:
		c.printf("%s\n", now.Format(dateWords.Replace(words[0][1:])))
	case f.has("I"):
		c.printf("%s\n", now.Format(time.DateOnly))
	case f.has("R"):
		c.printf("%s\n", now.Format(time.RFC1123Z))
	default:
		c.printf("%s\n", now.Format("Mon Jan _2 15:04:05 MST 2006"))
	}
	return 0
}

func sockets(c *call) int {
	c.printf("State    Recv-Q   Send-Q     Local Address:Port      Peer Address:Port\n")
	for _, s := range []struct{ service, at string }{{"ssh", "0.0.0.0:22"}, {"nginx", "0.0.0.0:80"},
		{"shop", "127.0.0.1:3000"},
		{"postgresql", "127.0.0.1:5432"}} {
		if unit, _ := c.shell.machine.service(s.service); unit.PID != 0 {
			c.printf("LISTEN   0        128      %18s           0.0.0.0:*\n", s.at)
		}
	}
	return 0
}

func address(c *call) int {
	if len(c.args) > 0 && strings.HasPrefix(c.args[0], "r") {
		c.printf("default via 10.0.2.2 dev eth0\n10.0.2.0/24 dev eth0 scope link src 10.0.2.15\n")
		return 0
	}
	c.printf("1: lo: <LOOPBACK,UP> mtu 65536 state UNKNOWN\n    inet 127.0.0.1/8 scope host lo\n" +
		"2: eth0: <BROADCAST,UP> mtu 1500 state UP\n    inet 10.0.2.15/24 scope global eth0\n")
	return 0
}

func blocks(c *call) int {
	c.printf("NAME   MAJ:MIN RM SIZE RO TYPE MOUNTPOINTS\nvda    254:0    0  20G  0 disk\n└─vda1 254:1    0  20G " +
		" 0 part /\n" +
		"vdb    254:16   0   1G  0 disk\n└─vdb1 254:17   0   1G  0 part /tmp\n")
	return 0
}

func mounts(c *call) int {
	if len(c.args) > 0 {
		return c.fail(32, "%s: permission denied", c.args[0])
	}
	for _, m := range filesystems {
		c.printf("%s on %s type %s (rw,relatime)\n", m.device, m.mount, m.kind)
	}
	return 0
}

func vmstat(c *call) int {
	c.printf("procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n" +
		" r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n" +
		" 1  0      0 611208  40120 650000    0    0     3     9   61  112  1  1 98  0  0\n")
	return 0
}

func offline(c *call) int { return c.fail(6, "this machine is simulated and has no network") }

func editor(c *call) int {
	return c.fail(1, "no program for whole screens runs on this machine; cat, sed and > are there")
}

func refused(c *call) int {
	return c.fail(1, "Operation not permitted on this simulated machine")
}
