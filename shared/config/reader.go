package config

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// reader reads variables, with one method for each kind, and collects problems. It trims white space around values,
// because secrets are often stored with a newline.
type reader struct {
	getenv   func(string) string
	deployed bool
	problems Problems
	shown    []Setting

	declared []variable
	refused  []Problem // must not be set in this environment, whatever their value
}

// A variable has what README.md says about one, in addition to its comment in Config.
type variable struct {
	name, def, needs string
	secret           bool
}

// known returns the names of the variables that were read.
func (r *reader) known() []string {
	names := []string{"CLOUD_RUN_TIMEOUT_SECONDS", "GEMINI_CONFIG"}
	for _, v := range r.declared {
		names = append(names, v.name)
	}
	return names
}

func (r *reader) declare(v variable) { r.declared = append(r.declared, v) }

// A Setting is a variable and the part of its value that is safe to show.
type Setting struct{ Variable, Value string }

func (r *reader) get(name string) string { return strings.TrimSpace(r.getenv(name)) }

// fail adds a problem, unless the variable already has one: the first problem is the one to fix first.
func (r *reader) fail(name, holds, needs string) {
	if !slices.ContainsFunc(r.problems, func(p Problem) bool { return p.Variable == name }) {
		r.problems = append(r.problems, Problem{name, holds, needs})
	}
}

// require adds a problem if the variable is needed and not set.
func (r *reader) require(needed bool, name, needs string) {
	if needed && r.get(name) == "" {
		r.fail(name, "", needs)
	}
}

// refuse adds a problem if the variable must not be set.
func (r *reader) refuse(bad bool, name, needs string) {
	if bad {
		r.refused = append(r.refused, Problem{Variable: name, Needs: needs})
	}
	secret := slices.ContainsFunc(r.declared, func(v variable) bool { return v.name == name && v.secret })
	if v := r.get(name); bad && v != "" {
		r.fail(name, show(v, secret), needs)
	}
}

func (r *reader) keep(name, value string) {
	if value == "" {
		return
	}
	if len(value) > 200 {
		value = plural(len(value), "byte", "bytes")
	}
	r.shown = append(r.shown, Setting{name, value})
}

// text returns the value, or the default. A value must satisfy ok, unless ok is nil.
func (r *reader) text(name, def, needs string, ok func(string) bool) string {
	r.declare(variable{name: name, def: def, needs: needs})
	v := r.get(name)
	if v == "" {
		r.keep(name, def)
		return def
	}
	if ok != nil && !ok(v) {
		r.fail(name, show(v, false), needs)
		return ""
	}
	r.keep(name, v)
	return v
}

func (r *reader) secret(name, needs string, ok func(string) bool) Secret {
	r.declare(variable{name: name, needs: needs, secret: true})
	v := r.get(name)
	if v != "" && (secretFillers.MatchString(v) || ok != nil && !ok(v)) {
		r.fail(name, show(v, true), needs)
		return Secret{}
	}
	s := NewSecret(v)
	if s.IsSet() {
		r.keep(name, s.String())
	}
	return s
}

func (r *reader) oneOf(name, def string, choices ...string) string {
	return r.text(name, def, "one of "+strings.Join(choices, ", "),
		func(v string) bool { return slices.Contains(choices, v) })
}

func (r *reader) number(name string, def, least, most int) int {
	needs := "a whole number from " + strconv.Itoa(least) + " to " + strconv.Itoa(most)
	v := r.text(name, strconv.Itoa(def), needs, func(v string) bool {
		n, err := strconv.Atoi(v)
		return err == nil && n >= least && n <= most
	})
	n, err := strconv.Atoi(v)
	if err != nil { // already reported
		return def
	}
	return n
}

func (r *reader) duration(name string, def, least, most time.Duration) time.Duration {
	needs := "a time from " + span(least) + " to " + span(most) + ", such as 90s, 15m, 24h or 7d"
	v := r.text(name, span(def), needs, func(v string) bool {
		d, err := ParseDuration(v)
		return err == nil && d >= least && d <= most
	})
	d, err := ParseDuration(v)
	if err != nil { // already reported
		return def
	}
	return d
}

// ParseDuration reads Go's notation, and whole days such as 7d.
func ParseDuration(v string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(v, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(v)
}

func span(d time.Duration) string {
	if d >= 48*time.Hour && d%(24*time.Hour) == 0 {
		return strconv.Itoa(int(d/(24*time.Hour))) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
