package supervisor_test

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

const mark = "0123456789abcdef0123456789abcdef"

// read parses a stream in parts of the given size.
func read(in string, size int) (out, end string, ok bool) {
	var b bytes.Buffer
	s := supervisor.NewStream(mark, &b)
	for ; in != ""; in = in[min(size, len(in)):] {
		_, _ = s.Write([]byte(in[:min(size, len(in))]))
	}
	end, ok = s.End()
	return b.String(), end, ok
}

func TestStream(t *testing.T) {
	begin := "\n" + mark + ":begin\n"
	last := "\n" + mark + ":3:/tmp:exited:10:0:5\n"
	for _, c := range []struct {
		name, in, out, end string
		ok                 bool
	}{
		{"nothing printed", begin + last, "", "3:/tmp:exited:10:0:5", true},
		{"output", begin + "a\nb" + last, "a\nb", "3:/tmp:exited:10:0:5", true},
		{"noise of the login", "Welcome!\n" + mark + "\n" + begin + "a\n" + last, "a\n", "3:/tmp:exited:10:0:5", true},
		{"in a terminal", strings.ReplaceAll(begin+"a\n"+last, "\n", "\r\n"), "a\r\n", "3:/tmp:exited:10:0:5", true},
		{"a last line that something follows", begin + "a" + last + "b" + last, "a" + last + "b",
			"3:/tmp:exited:10:0:5", true},
		{"two in a row", begin + last + last, last, "3:/tmp:exited:10:0:5", true},
		{"the mark alone", begin + "\n" + mark + "\n" + mark + ":" + last, "\n" + mark + "\n" + mark + ":",
			"3:/tmp:exited:10:0:5", true},
		{"cut in the output", begin + "a\n", "a\n", "", false},
		{"cut in the last line", begin + "a" + last[:40], "a" + last[:40], "", false},
		{"not begun", "Welcome!\n", "", "", false},
		{"a long line with the mark", begin + "\n" + mark + ":" + strings.Repeat("x", 20_000) + last,
			"\n" + mark + ":" + strings.Repeat("x", 20_000), "3:/tmp:exited:10:0:5", true},
	} {
		for _, size := range []int{1, 2, 3, 7, 33, 34, 35, 64, 1 << 20} {
			out, end, ok := read(c.in, size)
			if out != c.out || end != c.end || ok != c.ok {
				t.Errorf("%s, by %d: %.90q, %q, %t; want %.90q, %q, %t", c.name, size, out, end, ok, c.out, c.end, c.ok)
			}
		}
	}
}

// TestStreamCost reads long lines byte by byte. Each line might be the last one.
func TestStreamCost(t *testing.T) {
	line := "\n" + mark + ":" + strings.Repeat("x", 15_000)
	in := "\n" + mark + ":begin\n" + strings.Repeat(line, 8) + "\n" + mark + ":over\n"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	out, end, ok := read(in, 1)
	runtime.ReadMemStats(&after)
	if out != strings.Repeat(line, 8) || end != "over" || !ok {
		t.Errorf("%d bytes, %q, %t", len(out), end, ok)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
		t.Errorf("%d bytes of memory were used for %d", used, len(in))
	}
}

type failing struct{ writes int }

func (f *failing) Write([]byte) (int, error) {
	f.writes++
	return 0, errors.New("full")
}

// TestStreamWithoutReader checks that reading continues without a reader of the output.
func TestStreamWithoutReader(t *testing.T) {
	f := &failing{}
	s := supervisor.NewStream(mark, f)
	for _, part := range []string{"\n" + mark + ":begin\n", "a", "b", "\n" + mark + ":over\n"} {
		if _, err := s.Write([]byte(part)); err != nil {
			t.Error(err)
		}
	}
	if end, ok := s.End(); end != "over" || !ok || f.writes != 1 {
		t.Errorf("%q, %t, %d writes", end, ok, f.writes)
	}
}

// FuzzStream checks that the end of a stream is found after any output and in parts of any size.
func FuzzStream(f *testing.F) {
	f.Add("a\n"+mark+":0:/:x\nb\n"+mark, 3)
	f.Add("\r\n"+mark+":begin\r\n\r", 1)
	f.Add("\n"+mark+":\n\n\r\n"+mark[:20], 5)
	f.Fuzz(func(t *testing.T, printed string, size int) {
		if size < 1 || size > 1<<16 || len(printed) > 1<<16 {
			return
		}
		out, end, ok := read("\n"+mark+":begin\n"+printed+"\n"+mark+":END\n", size)
		// A terminal turns the keeper's \n into \r\n, so a \r before it counts as the keeper's.
		if !ok || end != "END" || out != printed && out+"\r" != printed {
			t.Fatalf("by %d: %q, %q, %t; want %q", size, out, end, ok, printed)
		}
	})
}
