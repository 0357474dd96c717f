package hosts

import (
	"net/netip"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/terminal"
)

// The limits of requests. Lengths are in bytes unless another unit is named.
const (
	maxName       = 64 // characters
	maxReadPaths  = 20
	maxReadPath   = 1024
	maxHostKeys   = 16 // and certificate authorities
	maxRevoked    = 64
	maxKnownHosts = 256 << 10
	maxPassword   = 1024
	maxPrivateKey = 8 << 10
	maxSide       = 1000 // columns or rows
)

// checked validates a new host except for its secret, and returns it without ID, user and secret.
func (h *Hosts) checked(in terminal.NewHost) (host terminal.Host, err error) {
	host = terminal.Host{Name: in.Name, Username: in.Username, Auth: in.Auth.Kind, AutoRun: terminal.AutoRunNone,
		ReadPaths: in.ReadPaths, Jump: orEmpty(in.Jump)}
	if err := checkName(in.Name); err != nil {
		return host, err
	}
	if host.Address, err = normalHost(in.Address); err != nil {
		return host, err
	}
	if host.Port, err = portOf(in.Port); err != nil {
		return host, err
	}
	if !isUsername.MatchString(in.Username) {
		return host, fault.Invalid("username", "a user's name on the host is required: 1 to 64 letters, digits, and "+
			`. _ - @ + \, and no hyphen at its beginning`)
	}
	if err = identify(&host, in); err != nil {
		return host, err
	}
	if in.AutoRun != nil {
		host.AutoRun = *in.AutoRun
	}
	if err := checkAutoRun(host.AutoRun); err != nil {
		return host, err
	}
	return host, checkReadPaths(in.ReadPaths)
}

// edit changes the editable fields of a host.
func edit(host *terminal.Host, in terminal.HostEdit) error {
	if in.Name != nil {
		if err := checkName(*in.Name); err != nil {
			return err
		}
		host.Name = *in.Name
	}
	if in.AutoRun != nil {
		if err := checkAutoRun(*in.AutoRun); err != nil {
			return err
		}
		host.AutoRun, host.Withdrawn = *in.AutoRun, false
	}
	if in.ReadPaths != nil {
		if err := checkReadPaths(*in.ReadPaths); err != nil {
			return err
		}
		host.ReadPaths = *in.ReadPaths
	}
	return nil
}

// checkName accepts names that a person can read on a card and type.
func checkName(name string) error {
	_, hidden := visible.Line(name)
	switch {
	case visible.Blank(name):
		return fault.Invalid("name", "a name for the host is required")
	case utf8.RuneCountInString(name) > maxName:
		return fault.Invalid("name", "the name has more than %d characters", maxName)
	case hidden || !utf8.ValidString(name):
		return fault.Invalid("name", "the name has invisible characters")
	case strings.TrimSpace(name) != name:
		return fault.Invalid("name", "the name begins or ends with a space")
	}
	return nil
}

// isUsername matches Unix user names, and names in a domain, such as ana@EXAMPLE.COM and EXAMPLE\ana.
var isUsername = lazyregexp.New(`^[A-Za-z0-9._][A-Za-z0-9._@+\\-]{0,63}$`)

var (
	isLabel   = lazyregexp.New(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	isNumeric = lazyregexp.New(`^(0x[0-9a-f]*|[0-9]+)$`) // resolvers read it as a part of an IP address
)

// normalHost returns the address in its canonical form: an IP address, or a DNS name in lower-case letters without a
// trailing dot.
func normalHost(address string) (string, error) {
	if a, err := netip.ParseAddr(address); err == nil {
		if a.Zone() != "" {
			return "", fault.Invalid("host", "an address with a zone is not accepted")
		}
		return a.Unmap().String(), nil
	}
	name := strings.TrimSuffix(strings.ToLower(address), ".")
	labels := strings.Split(name, ".")
	if len(name) > 253 || slices.ContainsFunc(labels, func(l string) bool { return !isLabel.MatchString(l) }) ||
		isNumeric.MatchString(labels[len(labels)-1]) {
		return "", fault.Invalid("host",
			"a DNS name or an IP address is required, without a user, a port or brackets; "+
				"a name with other letters in its ASCII form (xn--…)")
	}
	return name, nil
}

const defaultPort = 22

func portOf(port *int) (int, error) {
	if port == nil {
		return defaultPort, nil
	}
	if *port < 1 || *port > 65535 {
		return 0, fault.Invalid("port", "must be a number from 1 to 65535")
	}
	return *port, nil
}

func checkAutoRun(a terminal.AutoRun) error {
	if a != terminal.AutoRunNone && a != terminal.AutoRunReadOnly {
		return fault.Invalid("autoRun", "must be none or read_only")
	}
	return nil
}

// kernels are the folders in which reading a file can block, change something, or reveal other processes.
var kernels = []string{"/dev", "/proc", "/sys"}

func checkReadPaths(paths []string) error {
	if len(paths) > maxReadPaths {
		return fault.Invalid("readPaths", "more than %d folders", maxReadPaths)
	}
	for i, p := range paths {
		field := at("readPaths", i)
		_, hidden := visible.Line(p)
		switch {
		case len(p) > maxReadPath:
			return fault.Invalid(field, "the folder's path has more than %d bytes", maxReadPath)
		case !strings.HasPrefix(p, "/") || path.Clean(p) != p || hidden || !utf8.ValidString(p):
			return fault.Invalid(field,
				"an absolute path is required, without . and .., double slashes, a slash at its "+
					"end, and characters that cannot be seen")
		case p == "/" || slices.ContainsFunc(kernels, func(k string) bool { return p == k || under(p, k) }):
			return fault.Invalid(field, "/, /dev, /proc and /sys cannot be read without asking")
		case slices.Contains(paths[:i], p):
			return fault.Invalid(field, "duplicate folder")
		}
	}
	return nil
}

func under(p, folder string) bool { return strings.HasPrefix(p, folder+"/") }

func checkTerminal(in terminal.NewTerminal) error {
	if in.Cols < 1 || in.Cols > maxSide {
		return fault.Invalid("cols", "must be a number from 1 to %d", maxSide)
	}
	if in.Rows < 1 || in.Rows > maxSide {
		return fault.Invalid("rows", "must be a number from 1 to %d", maxSide)
	}
	if in.Cwd == nil {
		return nil
	}
	if _, hidden := visible.Line(*in.Cwd); hidden || !terminal.ValidDir(*in.Cwd) || path.Clean(*in.Cwd) != *in.Cwd ||
		!utf8.ValidString(*in.Cwd) {
		return fault.Invalid("cwd",
			"an absolute path is required, without . and .., double slashes, a slash at its end, "+
				"and characters that cannot be seen")
	}
	return nil
}
