package toolstest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// A preview is checked with Unicode's own tables, not with package visible, which made it.

// unseen reports whether r is invisible, or changes the display of the characters next to it.
func unseen(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp, unicode.Bidi_Control,
		unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) ||
		strings.ContainsRune("\u2800\u115F\u1160\u3164\uFFA0", r)
}

// clean checks that a text is UTF-8 and entirely visible, except for the line feeds and tabs of a long one.
func clean(t *testing.T, what, text string, long bool) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Fatalf("%s is not UTF-8: %q", what, text)
	}
	for _, r := range text {
		if unseen(r) && !(long && (r == '\n' || r == '\t')) {
			t.Fatalf("%s holds %U raw: %q", what, r, text)
		}
	}
}

// hidesNothing checks every text of a preview with clean, and that its labels are among these, each at most once.
func hidesNothing(t *testing.T, p tool.Preview, labels ...string) {
	t.Helper()
	clean(t, "the title", p.Title, false)
	for _, f := range p.Fields {
		i := slices.Index(labels, f.Label)
		if i < 0 {
			t.Fatalf("the field %q is not one of the tool's, or is duplicated", f.Label)
		}
		labels = slices.Delete(slices.Clone(labels), i, i+1)
		clean(t, "the field "+f.Label, f.Value, f.Long)
		names(t, f.Value, f.Moments)
	}
	for _, w := range p.Warnings {
		clean(t, "a warning", w, false)
	}
}

// names checks that the text contains each moment with its instant or day.
func names(t *testing.T, text string, moments []tool.Moment) {
	t.Helper()
	for _, m := range moments {
		_, instant := time.Parse(time.RFC3339, m.At)
		_, day := time.Parse(time.DateOnly, m.At)
		if m.Text == "" || !strings.Contains(text, m.Text) || instant != nil && day != nil {
			t.Fatalf("%q has the moment %+v", text, m)
		}
	}
	for _, stamp := range instants.FindAllString(text, -1) {
		if !slices.ContainsFunc(moments, func(m tool.Moment) bool { return m.Text == stamp }) {
			t.Fatalf("%q names %s, but has only the moments %+v", text, stamp, moments)
		}
	}
}

// instants matches times in the form that the server stores. On a card, a time is a moment, which each client shows in
// its own way.
var instants = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)`)

// shows checks that the field shows the text so that the text can be restored from it, and that a warning points out
// any invisible characters.
func shows(t *testing.T, p tool.Preview, label, text string) {
	t.Helper()
	if label == Title {
		if label = "The title"; !strings.Contains(restore(p.Title), text) {
			t.Fatalf("the title is %q, and %q is meant", p.Title, text)
		}
	} else if got := restore(value(t, p, label)); got != text {
		t.Fatalf("%s shows %q, and %q is meant", label, value(t, p, label), text)
	}
	hidden := strings.ContainsFunc(text, func(r rune) bool { return unseen(r) && r != '\n' && r != '\t' })
	if warned := slices.ContainsFunc(p.Warnings,
		func(w string) bool { return strings.HasPrefix(w, label+": ") }); hidden && !warned {
		t.Fatalf("%s hides something in %q, and no warning says so", label, text)
	}
}

// lists checks that the field shows exactly these addresses, each on its own line and at the beginning of the line.
func lists(t *testing.T, p tool.Preview, label string, addresses []string) {
	t.Helper()
	if len(addresses) == 0 {
		return
	}
	lines := strings.Split(value(t, p, label), "\n")
	if len(lines) != len(addresses) {
		t.Fatalf("%s shows %q for %q", label, lines, addresses)
	}
	for i, a := range addresses {
		if lines[i] != a && !strings.HasPrefix(lines[i], a+" (shown as ") {
			t.Fatalf("%s shows %q for %q", label, lines[i], a)
		}
	}
}

func value(t *testing.T, p tool.Preview, label string) string {
	t.Helper()
	i := slices.IndexFunc(p.Fields, func(f tool.Field) bool { return f.Label == label })
	if i < 0 {
		t.Fatalf("there is no field %q in %+v", label, p)
	}
	return p.Fields[i].Value
}

var escaped = regexp.MustCompile(`⟨U\+([0-9A-F]{4,6})⟩`)

// restore replaces escapes with the characters that they represent.
func restore(shown string) string {
	return escaped.ReplaceAllStringFunc(shown, func(e string) string {
		code, err := strconv.ParseInt(escaped.FindStringSubmatch(e)[1], 16, 32)
		if err != nil {
			panic(fmt.Sprintf("toolstest: %q: %v", e, err)) // unreachable: six hexadecimal digits are a number
		}
		return string(rune(code))
	})
}
