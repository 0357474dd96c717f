package config

import (
	"net/url"
	"strconv"

	"github.com/countersign-run/countersign/shared/base/address"
	"github.com/countersign-run/countersign/shared/base/outbound"
)

func (l *loader) mail(c *Config) {
	const server = "the address of an SMTP server, such as smtps://USER:PASSWORD@smtp.example.com, or smtp: for one " +
		"with STARTTLS (without a user only where it wants none)"
	const from = "one e-mail address, such as countersign@example.com"
	c.Notify = l.oneOf("NOTIFY", "", "mail")
	c.SMTP = l.secret("SMTP_URL", server, isSMTP(l.deployed))
	c.NotifyFrom = l.text("NOTIFY_FROM", "", from, isAddress)
	needed := c.Notify == "mail" && l.needs(Mail)
	l.require(needed, "SMTP_URL", server+", because NOTIFY is mail")
	l.require(needed, "NOTIFY_FROM", from+", because NOTIFY is mail")
	l.require(needed && c.ConsoleURL == "", "CONSOLE_URL", "the address of the console, or PUBLIC_URL, because NOTIFY "+
		"is mail")
}

// isSMTP accepts the URL of an SMTP server, with both user and password or neither.
func isSMTP(deployed bool) func(string) bool {
	return func(v string) bool {
		u, err := url.Parse(v)
		switch {
		case err != nil || len(v) > 2048 || u.Hostname() == "" || u.Scheme != "smtp" && u.Scheme != "smtps",
			*u != url.URL{Scheme: u.Scheme, Host: u.Host, User: u.User}, // it has a path or a query
			deployed && outbound.Loopback(u.Hostname()):
			return false
		}
		if p := u.Port(); p != "" {
			if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
				return false
			}
		}
		password, with := u.User.Password()
		return u.User == nil || with && u.User.Username() != "" && password != ""
	}
}

// isAddress accepts an address in its normalized spelling.
func isAddress(v string) bool {
	normal, err := address.Normalize(v)
	return err == nil && normal == v
}
