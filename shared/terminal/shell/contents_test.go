package shell_test

import (
	"slices"
	"testing"

	"github.com/countersign-run/countersign/shared/terminal/shell"
)

func TestContents(t *testing.T) {
	for command, want := range map[string]struct{ prints, writes []string }{
		"cat a.txt":                            {[]string{"a.txt"}, nil},
		"cat -n -- ./a.txt /etc/b":             {[]string{"a.txt", "/etc/b"}, nil},
		"/bin/cat a | grep x":                  {},
		"cat a > b":                            {},
		"cat a 2>/dev/null":                    {[]string{"a"}, nil},
		"cd src && cd sub; cat 'a b'":          {[]string{"src/sub/a b"}, nil},
		"set -e; ( cd /w; cat a ) && ls":       {[]string{"/w/a"}, nil},
		"make || { cat log; }":                 {[]string{"log"}, nil},
		"cat $F":                               {},
		"cat > a <<'E'\nx\nE":                  {nil, []string{"a"}},
		"cat <<E >/etc/a\n$x\nE":               {nil, []string{"/etc/a"}},
		"cat >> a <<E\nx\nE":                   {},
		"echo \"$x\" > a":                      {nil, []string{"a"}},
		"printf '%s' x >| a":                   {nil, []string{"a"}},
		"echo x > /dev/null":                   {},
		"echo x 2> err":                        {},
		"tee a b <<E\nx\nE":                    {nil, []string{"a", "b"}},
		"echo x | sudo -n tee a":               {},
		"echo x | tee a":                       {nil, []string{"a"}},
		"echo x | tee -a a":                    {},
		"sort a | tee a":                       {},
		"sed s/a/b/ a > b":                     {},
		"cat <<<x > a":                         {nil, []string{"a"}},
		"cat > a <<'E' && cat a\nx\nE":         {[]string{"a"}, []string{"a"}},
		"if x; then cat a; fi; cat b; (exit 1": {},
	} {
		prints, writes, _ := shell.Contents(command, shell.Bash)
		if !slices.Equal(prints, want.prints) || !slices.Equal(writes, want.writes) {
			t.Errorf("%s: it prints %q and writes %q", command, prints, writes)
		}
	}
}

// TestExcerpts tests commands that print some lines of a file.
func TestExcerpts(t *testing.T) {
	for command, want := range map[string][]string{
		"head -50 a": {"a"}, "tail -n +10 -- src/a": {"+10", "src/a"}, "sed -n '1,20p' a": {"a"},
		"sed -n 's/a/b/p' /etc/a /etc/b": {"/etc/a", "/etc/b"}, "cat a | head": {"a"},
		"cd src; cat a | tail -5": {"src/a"},
		"head a > b":              nil, "sed s/a/b/ a": nil, "cat a": nil, "ls | head": nil, "cat a | wc -l": nil,
		"cat a | sort | head": nil,
		"cat a; make | head":  nil, "head $F": nil,
	} {
		if got := shell.Excerpts(command, shell.Bash); !slices.Equal(got, want) {
			t.Errorf("%s: %q; want %q", command, got, want)
		}
	}
}
