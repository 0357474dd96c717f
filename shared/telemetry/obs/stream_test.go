package obs_test

import (
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// printed lists outputs of commands, with the expected output of the filter.
var printed = []struct{ name, out, want string }{
	{"nothing", "total 4\ndrwx 2 ana ana\n", "total 4\ndrwx 2 ana ana\n"},
	{"units and prompts keep their @", "getty@tty1.service loaded\nana@web:~$ ",
		"getty@tty1.service loaded\nana@web:~$ "},
	{"an AWS key", "id = AKIAIOSFODNN7EXAMPLE x\n", "id = [redacted] x\n"},
	{"a bearer", "Authorization: Bearer abc.def.ghi\nok\n", "Authorization: [redacted]\nok\n"},
	{"a password of a URL", "postgres://ana:hunter2@db/x\n", "postgres://[redacted]db/x\n"},
	{"a variable", "DB_PASSWORD=hunter2\nHOME=/root\n", "DB_PASSWORD=[redacted]\nHOME=/root\n"},
	{"a key file", "a\n-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNza\nAAAA\n-----END OPENSSH PRIVATE KEY-----\nz\n",
		"a\n[redacted]\n\nz\n"},
	{"a key file without an end", "-----BEGIN PRIVATE KEY-----\nb3BlbnNza\nAAAA\n", "[redacted]\n"},
	{"a GitHub token at the end", "ghp_0123456789abcdef", "[redacted]"},
}

// TestSecretFilter writes each output at once, byte by byte, and split in two at each place.
func TestSecretFilter(t *testing.T) {
	for _, p := range printed {
		t.Run(p.name, func(t *testing.T) {
			if got := filtered(t, p.out); got != p.want {
				t.Errorf("at once: %q; want %q", got, p.want)
			}
			if got := filtered(t, strings.Split(p.out, "")...); got != p.want {
				t.Errorf("byte by byte: %q; want %q", got, p.want)
			}
			for i := range p.out {
				if got := filtered(t, p.out[:i], p.out[i:]); got != p.want {
					t.Errorf("split at %d: %q; want %q", i, got, p.want)
				}
			}
		})
	}
}

func filtered(t *testing.T, pieces ...string) string {
	t.Helper()
	var b strings.Builder
	f := obs.NewSecretFilter(&b)
	for _, p := range pieces {
		if n, err := f.Write([]byte(p)); err != nil || n != len(p) {
			t.Fatal(n, err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestSecretFilterWords checks that output without a line break is passed on word by word, and the last word once
// nothing more arrives. The answer after a question on the same line is not passed on with it.
func TestSecretFilterWords(t *testing.T) {
	var b strings.Builder
	f := obs.NewSecretFilter(&b)
	for _, step := range []struct{ piece, want string }{
		{"checking ana", "checking "},
		{"... ", "checking ana... "},
		{"\rPass", "checking ana... \r"},
		{"word:", "checking ana... \r"},
		{"", "checking ana... \rPassword:"},
		{" hunter2", "checking ana... \rPassword: "},
		{"", "checking ana... \rPassword: [redacted]"},
		{"\nwelcome\n", "checking ana... \rPassword: [redacted]\nwelcome\n"},
	} {
		if _, err := f.Write([]byte(step.piece)); err != nil {
			t.Fatal(err)
		}
		if err := f.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != step.want {
			t.Errorf("after %q: %q; want %q", step.piece, got, step.want)
		}
	}
}

func FuzzSecretFilter(f *testing.F) {
	for _, p := range printed {
		f.Add(p.out, 7)
	}
	f.Fuzz(func(t *testing.T, out string, at int) {
		const canary = "AKIAIOSFODNN7EXAMPLE"
		out += " " + canary + "\nend\n"
		at = max(0, min(at, len(out)))
		got := filtered(t, out[:at], out[at:])
		if strings.Contains(got, canary) {
			t.Errorf("%q: %q", out, got)
		}
		if at2 := filtered(t, out); !strings.Contains(out, "-----") && len(out) < 8<<10 && at2 != got {
			t.Errorf("split at %d: %q; at once: %q", at, got, at2)
		}
	})
}

// TestSecretFilterBlock filters a block with only a first line, as grep prints it. The output after it is shown.
func TestSecretFilterBlock(t *testing.T) {
	var out strings.Builder
	f := obs.NewSecretFilter(&out)
	_, _ = f.Write([]byte("key.pem:-----BEGIN RSA PRIVATE KEY-----\n/etc/hosts: 2 lines (of 3)\nand more\n"))
	_ = f.Close()
	if want := "key.pem:[redacted]\n/etc/hosts: 2 lines (of 3)\nand more\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// TestSecretFilterLongWord puts a secret at each place where a word is cut because it is too long to be held back.
// At most the prefix that identifies the secret is passed on, and all the text around it is.
func TestSecretFilterLongWord(t *testing.T) {
	const token = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
	for left := range len(token) + 2 {
		word := strings.Repeat("a", 16<<10-left) // the limit for passing on at once, minus left
		out := word + token + " and more\n"
		for _, at := range []int{0, len(word) + 2} {
			got := filtered(t, out[:at], out[at:])
			head, tail, _ := strings.Cut(got, "[redacted]")
			if !strings.HasPrefix(word+token[:4], head) || tail != " and more\n" {
				t.Errorf("%d bytes before its end, split at %d: %q", left, at, got[len(word)-9:])
			}
		}
	}
}
