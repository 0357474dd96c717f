package hostile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// Case is one hostile input, and the expected outcome.
type Case struct {
	ID       string         `json:"id"`
	Category string         `json:"category"`
	Target   string         `json:"target"`
	Input    map[string]any `json:"input"`
	Expect   struct {
		Class string `json:"class"` // of the error, or "none"
		HTTP  int    `json:"http"`
		Note  string `json:"note"`
		Code  string `json:"code"`  // of the error; optional
		Field string `json:"field"` // the field in the error, or the beginning of its name; optional
		Says  string `json:"says"`  // part of the error's message; optional
	} `json:"expect"`
}

// errUnknownForm means that the input has a form that the runner does not know.
var errUnknownForm = errors.New("unknown form")

func unknown(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errUnknownForm, fmt.Sprintf(format, args...))
}

//go:embed testdata/*.jsonl
var committed embed.FS

// committedCases returns the cases in testdata.
func committedCases() (all []Case, err error) {
	files, err := committed.ReadDir("testdata")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		data, err := committed.ReadFile("testdata/" + f.Name())
		if err != nil {
			return nil, err
		}
		cases, err := parseCases(f.Name(), data)
		if err != nil {
			return nil, err
		}
		all = append(all, cases...)
	}
	return all, nil
}

// allCases returns the committed cases, and those cases of HOSTILE_CASES that are not committed.
func allCases() ([]Case, error) {
	all, err := committedCases()
	more := os.Getenv("HOSTILE_CASES")
	if err != nil || more == "" {
		return all, err
	}
	seen := map[string]bool{}
	for _, c := range all {
		seen[c.ID+jsonOf(c.Input)] = true
	}
	others, err := readCases(more)
	for _, c := range others {
		if !seen[c.ID+jsonOf(c.Input)] { // the file may contain copies of committed cases
			all = append(all, c)
		}
	}
	return all, err
}

// readCases reads a file with one case a line.
func readCases(file string) ([]Case, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parseCases(file, data)
}

func parseCases(file string, data []byte) ([]Case, error) {
	var cases []Case
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 8<<20)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var c Case
		dec := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		dec.UseNumber()
		if err := dec.Decode(&c); err != nil || c.ID == "" {
			return nil, fmt.Errorf("%s: line %d is not a case (%w)", file, n, err)
		}
		cases = append(cases, c)
	}
	if lines.Err() == nil && len(cases) == 0 {
		return nil, fmt.Errorf("%s contains no case", file)
	}
	return cases, lines.Err()
}

// notation expands the values of a case into the values to send. Besides JSON values there are Go strings with any
// bytes, raw JSON, and times.
type notation struct {
	now     func() time.Time
	fixture func(name, arg string) (any, error) // returns errUnknownForm for an unknown name
	token   func(spec map[string]any) (string, error)
}

// value expands a value of a case.
func (n notation) value(v any) (any, error) {
	switch v := v.(type) {
	case string:
		return n.text(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			var err error
			if out[i], err = n.value(v[i]); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		for key, arg := range v {
			if len(v) == 1 && strings.HasPrefix(key, "$") {
				return n.operator(key, arg)
			}
		}
		return n.object(v)
	}
	return v, nil
}

func (n notation) object(v map[string]any) (any, error) {
	out := map[string]any{}
	for key, part := range v {
		var err error
		if out[key], err = n.value(part); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// operator expands an object whose only name begins with a dollar sign.
func (n notation) operator(name string, arg any) (any, error) {
	if name == "$list" { // the template is expanded once for each number
		return n.list(arg)
	}
	arg, err := n.value(arg)
	if err != nil {
		return nil, err
	}
	list, _ := arg.([]any)
	spec, _ := arg.(map[string]any)
	switch {
	case name == "$rep" && len(list) == 2:
		count, err := number(list[1])
		return strings.Repeat(textOf(list[0]), count), err
	case name == "$cat":
		var b strings.Builder
		for _, part := range list {
			b.WriteString(textOf(part))
		}
		return b.String(), nil
	case name == "$hex":
		b, err := hex.DecodeString(textOf(arg))
		return string(b), err
	case name == "$b64":
		return base64.StdEncoding.EncodeToString([]byte(textOf(arg))), nil
	case name == "$nest":
		depth, err := number(arg)
		return json.RawMessage(strings.Repeat("[", depth) + strings.Repeat("]", depth)), err
	case name == "$now":
		shift, err := number(arg)
		return n.now().Add(time.Duration(shift) * time.Second), err
	case name == "$jwt" && spec != nil:
		return n.token(spec)
	case name == "$gzipbomb" && spec != nil:
		return gzipBomb(spec)
	}
	return nil, unknown("the notation %s", name)
}

// list repeats a template, with {i} as the number.
func (n notation) list(arg any) (any, error) {
	parts, _ := arg.([]any)
	if len(parts) != 2 {
		return nil, unknown("$list without a template and a number")
	}
	count, err := number(parts[1])
	if err != nil {
		return nil, err
	}
	out := make([]any, count)
	for i := range out {
		if out[i], err = n.value(numbered(parts[0], fmt.Sprint(i))); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func numbered(v any, i string) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "{i}", i)
	case []any:
		out := make([]any, len(v))
		for k := range v {
			out[k] = numbered(v[k], i)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k := range v {
			out[numbered(k, i).(string)] = numbered(v[k], i)
		}
		return out
	}
	return v
}

var fixtureName = regexp.MustCompile(`\$([A-Z][A-Z0-9_]*)(\(([^()]*)\))?`)

// shellNames are names of shell variables, which are plain text here.
var shellNames = map[string]bool{"PATH": true, "HOME": true, "IFS": true, "USER": true, "PWD": true, "SHELL": true,
	"PAGER": true, "EDITOR": true,
	"RANDOM": true, "SECRET": true, "GITHUB_TOKEN": true, "LD_PRELOAD": true, "BASH_ENV": true, "PS1": true,
	"PROMPT_COMMAND": true}

// text expands fixtures. A fixture that is the whole text keeps its type. Names of shell variables are plain text. Any
// other unknown name is a form that the runner does not know.
func (n notation) text(s string) (any, error) {
	if m := fixtureName.FindStringSubmatch(s); m != nil && m[0] == s {
		if shellNames[m[1]] && m[2] == "" {
			return s, nil
		}
		return n.fixture(m[1], m[3])
	}
	var failed error
	out := fixtureName.ReplaceAllStringFunc(s, func(found string) string {
		m := fixtureName.FindStringSubmatch(found)
		if shellNames[m[1]] && m[2] == "" {
			return found
		}
		v, err := n.fixture(m[1], m[3])
		failed = errors.Join(failed, err)
		return textOf(v)
	})
	return out, failed
}

// number reads a count in a case.
func number(v any) (int, error) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, unknown("%T where a number belongs", v)
	}
	i, err := n.Int64()
	return int(i), err
}

// textOf returns a string unchanged, and anything else as JSON.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case nil:
		return ""
	}
	return jsonOf(v)
}

// jsonOf writes JSON without corrections: strings keep bytes that are not UTF-8, and raw JSON can be nested to any
// depth.
func jsonOf(v any) string {
	switch v := v.(type) {
	case string:
		return quoted(v)
	case json.RawMessage:
		return string(v)
	case time.Time:
		return quoted(v.UTC().Format(time.RFC3339))
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = jsonOf(v[i])
		}
		return "[" + strings.Join(parts, ",") + "]"
	case map[string]any:
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, quoted(key)+":"+jsonOf(v[key]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("hostile: a case cannot contain a value of type %T", v))
	}
	return string(b)
}

func quoted(s string) string {
	if utf8.ValidString(s) {
		if b, err := strictjson.Marshal(s); err == nil { // true for valid strings
			return string(b)
		}
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// gzipBomb returns a small body that inflates to out_mb megabytes.
func gzipBomb(spec map[string]any) (any, error) {
	mb, err := number(spec["out_mb"])
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := io.CopyN(z, zeros{}, int64(mb)<<20); err != nil {
		return nil, err
	}
	return b.String(), z.Close()
}

// zeros is an endless reader.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
