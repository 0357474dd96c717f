package demohost

import (
	"fmt"
	"strings"
	"time"
)

const mib = 1 << 20

// furnish writes the files of a small web server to the new disk: a configuration, a site, logs, and a neglected folder
// of temporary files.
func (m *machine) furnish() error {
	d, now := m.disk, m.now()
	ago := func(days float64) time.Time { return now.Add(-time.Duration(days * 24 * float64(time.Hour))) }
	for _, dir := range []string{"/root/.ssh", "/home", "/bin", "/usr/bin", "/usr/sbin", "/etc/nginx/sites-enabled",
		"/opt", "/srv", "/mnt", "/var/lib", "/var/backups", "/var/log/nginx", "/run", "/tmp", "/var/tmp", "/dev",
		"/proc"} {
		if err := d.root.MkdirAll(inside(dir), 0o755); err != nil {
			return err
		}
	}
	for name, text := range files {
		if err := d.write(name, []byte(text), ago(120)); err != nil {
			return err
		}
	}
	if err := d.root.Symlink("../sites-available/default", "etc/nginx/sites-enabled/default"); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		size int64
		days float64
	}{
		{"/tmp/build-cache/layer-01.tar", 88 * mib, 41}, {"/tmp/build-cache/layer-02.tar", 73 * mib, 41},
		{"/tmp/build-cache/layer-03.tar", 95 * mib, 33}, {"/tmp/build-cache/layer-04.tar", 61 * mib, 33},
		{"/tmp/core.nginx.2231", 184 * mib, 21}, {"/tmp/upload-7f3a.part", 96 * mib, 16},
		{"/tmp/db-dump-old.sql", 142 * mib, 28}, {"/tmp/import-today.csv", 11 * mib, 0.1},
		{"/var/backups/site-monday.tar.gz", 34 * mib, 6},
	} {
		if err := d.sparse(f.name, f.size, ago(f.days)); err != nil {
			return err
		}
	}
	if err := d.root.Chmod("usr/local/bin/rotate-reports", 0o755); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"/tmp/sess_9c41f2":          "user|s:3:\"ana\";cart|a:0:{}\n",
		"/tmp/import-today.lock":    "1207\n",
		"/var/log/syslog":           m.syslog(),
		"/var/log/auth.log":         m.authlog(),
		"/var/log/nginx/access.log": m.access(),
		"/var/log/nginx/error.log":  m.errors(),
		"/var/log/dpkg.log": ago(30).Format("2006-01-02 15:04:05") +
			" status installed nginx:amd64 1.26.3-3\n",
		"/var/lib/demo/report-today.md": "# Orders of today\n\n| shop | orders |\n| --- | --- |\n| north | 41 |\n| " +
			"south | 17 |\n",
	} {
		if err := d.write(name, []byte(text), ago(0.05)); err != nil {
			return err
		}
	}
	return nil
}

func (m *machine) stamp(hours float64) string {
	return m.now().Add(-time.Duration(hours*float64(time.Hour))).Format("Jan _2 15:04:05") + " " + hostname
}

func (m *machine) syslog() string {
	var b strings.Builder
	for h := 20.0; h > 0; h -= 2 {
		fmt.Fprintf(&b, "%s CRON[%d]: (root) CMD (/usr/local/bin/rotate-reports)\n", m.stamp(h), 2100+int(h))
	}
	fmt.Fprintf(&b, "%s systemd[1]: backup-upload.service: Main process exited, code=exited, status=28/n/a\n",
		m.stamp(1.5))
	fmt.Fprintf(&b, "%s systemd[1]: backup-upload.service: Failed with result 'exit-code'.\n", m.stamp(1.5))
	fmt.Fprintf(&b, "%s import[1207]: warning: /tmp is filling up\n", m.stamp(0.5))
	return b.String()
}

func (m *machine) authlog() string {
	var b strings.Builder
	for h := 9.0; h > 1; h-- {
		fmt.Fprintf(&b, "%s sshd[%d]: Accepted publickey for root from 198.51.100.7 port %d ssh2\n", m.stamp(h),
			1700+int(h), 50000+int(h)*37)
	}
	return b.String()
}

func (m *machine) access() string {
	var b strings.Builder
	paths := []string{"/", "/products", "/products/7", "/cart", "/style.css", "/favicon.ico", "/admin"}
	for i := range 120 {
		p, code := paths[i*5%len(paths)], 200
		switch {
		case p == "/admin":
			code = 403
		case i%17 == 0:
			code = 502
		}
		fmt.Fprintf(&b, "203.0.113.%d - - [%s] \"GET %s HTTP/1.1\" %d %d\n", 5+i%9,
			m.now().Add(-time.Duration(120-i)*time.Minute).Format("02/Jan/2006:15:04:05 -0700"), p, code, 300+i*37%4000)
	}
	return b.String()
}

func (m *machine) errors() string {
	var b strings.Builder
	for i := range 7 {
		fmt.Fprintf(&b, "%s [error] 812#812: *%d connect() failed (111: Connection refused) while connecting to "+
			"upstream, client: 203.0.113.%d, server: shop.example\n",
			m.now().Add(-time.Duration(119-17*i)*time.Minute).Format("2006/01/02 15:04:05"), 400+i*17, 5+i)
	}
	return b.String()
}

// files holds the files of the new machine that only commands change, by path.
var files = map[string]string{
	"/etc/hostname": hostname + "\n",
	"/etc/hosts":    "127.0.0.1\tlocalhost\n127.0.1.1\t" + hostname + "\n",
	"/etc/os-release": "PRETTY_NAME=\"Demo GNU/Linux 1 (simulated)\"\nNAME=\"Demo GNU/Linux\"\nVERSION_ID=\"1\"\n" +
		"ID=demo\nID_LIKE=debian\n",
	"/etc/passwd": "root:x:0:0:root:/root:/bin/bash\nwww-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n" +
		"postgres:x:106:112:PostgreSQL:/var/lib/postgresql:/bin/bash\n" +
		"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
	"/etc/group":   "root:x:0:\nsudo:x:27:\nwww-data:x:33:\n",
	"/etc/crontab": "17 *\t* * *\troot\t/usr/local/bin/rotate-reports\n",
	"/etc/motd": "This machine is simulated: it is one folder of the\n" +
		"local server's data, and no command can leave that\nfolder. To reset the machine, delete the folder.\n",
	"/etc/nginx/nginx.conf": "user www-data;\nworker_processes 2;\n\nevents {\n    worker_connections " +
		"512;\n}\n\nhttp {\n" +
		"    access_log /var/log/nginx/access.log;\n    include /etc/nginx/sites-enabled/*;\n}\n",
	"/etc/nginx/sites-available/default": "server {\n    listen 80;\n    server_name shop.example;\n    root " +
		"/var/www/html;\n\n" +
		"    location /cart {\n        proxy_pass http://127.0.0.1:3000;\n    }\n}\n",
	"/var/www/html/index.html":      "<!doctype html>\n<title>Shop</title>\n<h1>The example shop</h1>\n",
	"/usr/local/bin/rotate-reports": "#!/bin/sh\nset -e\ncd /var/lib/demo\nls report-* | tail -n +8 | xargs rm -f\n",
	"/root/.profile":                "export EDITOR=nano\n",
	"/root/notes.txt": "- /tmp fills up every few weeks: build-cache and old dumps can go, import-today.csv " +
		"is in use\n" +
		"- nginx: check with nginx -t before a restart\n",
	"/proc/version": "Linux version " + kernel + " (demo@demo)\n",
	"/proc/loadavg": "0.21 0.17 0.11 1/143 2931\n",
	"/proc/meminfo": "MemTotal:        2014304 kB\nMemFree:          611208 kB\nMemAvailable:    1301220 kB\n",
	"/dev/null":     "", "/dev/full": "", "/dev/tty": "", "/dev/stdout": "", "/dev/stderr": "",
}
