package visible

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestLineEscapes(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"bidi override":           {"approved by \u202ekcehc\u202c", "approved by ⟨U+202E⟩kcehc⟨U+202C⟩"},
		"soft hyphen, zero width": {"in\u00advoice \u200bA\u2060pproved", "in⟨U+00AD⟩voice ⟨U+200B⟩A⟨U+2060⟩pproved"},
		"tag characters":          {"x\U000E0041\U000E007F", "x⟨U+E0041⟩⟨U+E007F⟩"},
		"braille blanks":          {"Pay\u2800now", "Pay⟨U+2800⟩now"},
		"isolates":                {"\u202d\u2066\u2069nested", "⟨U+202D⟩⟨U+2066⟩⟨U+2069⟩nested"},
		"variation selectors":     {"a\ufe0fb\U000E0100", "a⟨U+FE0F⟩b⟨U+E0100⟩"},
		"byte order mark":         {"\ufeffhello", "⟨U+FEFF⟩hello"},
		"interlinear":             {"\ufff9a\ufffab\ufffb", "⟨U+FFF9⟩a⟨U+FFFA⟩b⟨U+FFFB⟩"},
		"hangul filler":           {"a\u3164b\uffa0", "a⟨U+3164⟩b⟨U+FFA0⟩"},
		"private use":             {"\ue000x", "⟨U+E000⟩x"},
		"terminal link":           {"\x1b]8;;http://evil\x07click", "⟨U+001B⟩]8;;http://evil⟨U+0007⟩click"},
		"line separators":         {"a\u2028b\u2029c\u0085d", "a⟨U+2028⟩b⟨U+2029⟩c⟨U+0085⟩d"},
		"odd spaces":              {"a\u2003b\u200ac", "a⟨U+2003⟩b⟨U+200A⟩c"},
		"line feed in a title":    {"a\nb\tc", "a⟨U+000A⟩b⟨U+0009⟩c"},
		"bad UTF-8":               {"a\xffb\xef", "a⟨0xFF⟩b⟨0xEF⟩"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, hidden := Line(c.in); got != c.want || !hidden {
				t.Errorf("Line(%q) = %q, %v; want %q, true", c.in, got, hidden, c.want)
			}
		})
	}
}

func TestTextOrdinary(t *testing.T) {
	for _, s := range []string{
		"", "Hello,\n\tworld", "Grüße, 你好, مرحبا, שלום, 👍", "<details><summary>safe</summary>x</details>",
		"![x](https://evil.example/leak)",
		"&lt;b&gt;", "{{constructor}}", "2\u00a0kg", "全角\u3000空白", "\uFFFD",
		"Please confirm **[Approve](https://evil.example/a)** or ignore",
		"<!-- to: boss@corp.com -->", strings.Repeat("\n", 200) + "hidden tail", "⟨angle⟩",
	} {
		if got, hidden := Text(s); got != s || hidden {
			t.Errorf("Text(%q) = %q, %v", s, got, hidden)
		}
	}
}

func TestTextForgedEscape(t *testing.T) {
	forged, hidden := Text("⟨U+202E⟩")
	if real, _ := Text("\u202e"); forged == real || hidden {
		t.Errorf("a written escape is shown as %q, a real one as %q", forged, real)
	}
}

func TestSuspicious(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"cyrillic in a latin word": {"log in to p\u0430ypal now", "mixes Latin and Cyrillic"},
		"greek in a latin word":    {"g\u03bf\u03bfgle", "mixes Latin and Greek"},
		"full width":               {"\uff41\uff42\uff43", "look-alikes"},
		"mathematical":             {"\U0001D41A\U0001D41B", "look-alikes"},
		"piled marks":              {"a\u0301\u0302\u0303\u0304\u0305", "piled up"},
		"decomposed":               {"cafe\u0301", "composed in an unusual way"},
		"blank lines":              {"ok" + strings.Repeat("\n \t", 200) + "wire 10000 EUR", "long blank stretch"},
		"blank space":              {"ok" + strings.Repeat(" ", 300) + "evil", "long blank stretch"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(Suspicious(c.in), " "); !strings.Contains(got, c.want) {
				t.Errorf("Suspicious = %q; want %q in it", got, c.want)
			}
		})
	}
	for _, s := range []string{"", "plain", "Привет, Anna", "Ελλάδα and Greece", "naïve café", "東京 2027", "a\n\n\nb"} {
		if got := Suspicious(s); got != nil {
			t.Errorf("Suspicious(%q) = %q", s, got)
		}
	}
}

func TestBlank(t *testing.T) {
	for _, s := range []string{"", " ", "\n\t\r\v\f", "\u200b", "\u200b\u200c\u200d\u2060\ufeff", "\u00a0\u3000\u2003",
		"\u202e\u202c\u2066\u2069", "\u00ad", "\u2800", "\u3164\uffa0",
		"\ufe0f", "\U000E0041\U000E007F", "\U000E0100", "\u180e", "\u2028\u2029", "\u0085", "\u034f", "\u061c",
		"\u115f\u1160", "\x00\x1b", " \u200b \u2064\n"} {
		if !Blank(s) {
			t.Errorf("%+q is taken for visible", s)
		}
	}
	for _, s := range []string{"a", ".", "\u200bhi\u200b", "日本", "👍", "👩\u200d🚀", "❤\ufe0f", "\ue000", "\U0001FAE9",
		"\u0301", "\ufffd", "ก"} {
		if Blank(s) {
			t.Errorf("%+q is taken for blank", s)
		}
	}
}

// FuzzText checks that no dangerous character is shown unescaped by Text, Line or a warning.
func FuzzText(f *testing.F) {
	for _, s := range []string{"plain", "a\u202eb", "\U000E0041", "x\xff", "⟨U+202E⟩", "\x1b[2J", "a\u2800", "\ue000",
		"\u0085", "p\u0430y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, show := range []func(string) (string, bool){Text, Line} {
			shown, _ := show(s)
			if !utf8.ValidString(shown) {
				t.Fatalf("%q is not UTF-8", shown)
			}
			for _, r := range shown {
				if r == '\n' || r == '\t' {
					continue
				}
				if Dangerous(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) ||
					unicode.Is(unicode.Bidi_Control, r) {
					t.Fatalf("%U is shown raw", r)
				}
			}
		}
		if line, _ := Line(s); strings.ContainsAny(line, "\n\t\r") {
			t.Fatalf("a line is broken: %q", line)
		}
		if shown, hidden := Text(s); Blank(s) && !hidden && strings.Trim(shown, " \n\t\u00a0\u3000") != "" {
			t.Fatalf("%+q is blank and shown as %q", s, shown)
		}
		for _, w := range Suspicious(s) {
			if strings.ContainsFunc(w, Dangerous) {
				t.Fatalf("a warning holds a dangerous character: %q", w)
			}
		}
	})
}

// BenchmarkSuspicious reads an answer of usual length that is not suspicious.
func BenchmarkSuspicious(b *testing.B) {
	text := strings.Repeat("The council meets every second Tuesday in the old town hall, beside the river. Its "+
		"members speak for two minutes each; the café’s chair keeps a list.\n\n- Bus 4 stops at the door\n", 11)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if got := Suspicious(text); len(got) > 0 {
			b.Fatalf("%q; want no warning", got)
		}
	}
}
