package demohost

import (
	"fmt"
	"slices"
)

func nginx(c *call) int {
	switch {
	case slices.Contains(c.args, "-v"):
		fmt.Fprintln(c.err, "nginx version: nginx/1.26.3")
	case slices.Contains(c.args, "-t"):
		if wrong := c.wrongConfiguration(); wrong != "" {
			fmt.Fprintf(c.err, "%s\nnginx: configuration file /etc/nginx/nginx.conf test failed\n", wrong)
			return 1
		}
		fmt.Fprintf(c.err, "nginx: the configuration file /etc/nginx/nginx.conf syntax is ok\n"+
			"nginx: configuration file /etc/nginx/nginx.conf test is successful\n")
	case slices.Contains(c.args, "-s"):
		return c.unit("reload", "nginx")
	default:
		return c.fail(1, "use systemctl start nginx")
	}
	return 0
}

// wrongConfiguration returns the mistake in nginx's files: a missing file, or unbalanced brackets.
func (c *call) wrongConfiguration() string {
	for _, name := range []string{"/etc/nginx/nginx.conf", "/etc/nginx/sites-enabled/default"} {
		text, err := c.disk.readFile(name)
		if err != nil {
			return fmt.Sprintf("nginx: [emerg] open() \"%s\" failed (2: %s)", name, reason(err))
		}
		depth, line := 0, 1
		for _, r := range string(text) {
			switch r {
			case '\n':
				line++
			case '{':
				depth++
			case '}':
				depth--
			}
			if depth < 0 {
				return fmt.Sprintf("nginx: [emerg] unexpected \"}\" in %s:%d", name, line)
			}
		}
		if depth != 0 {
			return fmt.Sprintf("nginx: [emerg] unexpected end of file, expecting \"}\" in %s:%d", name, line)
		}
	}
	return ""
}
