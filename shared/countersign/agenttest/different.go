package agenttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// different returns the path of the first difference between two values as JSON, with both values. It returns "" if
// they are equal.
func different(recorded, now any) string {
	return differ("", plain(recorded), plain(now))
}

// plain converts a value to its JSON form. Numbers keep their notation.
func plain(v any) (out any) {
	raw, err := strictjson.Marshal(v)
	if err == nil {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		err = dec.Decode(&out)
	}
	if err != nil {
		return fmt.Sprint(v)
	}
	return out
}

func differ(at string, recorded, now any) string {
	switch r := recorded.(type) {
	case map[string]any:
		if n, ok := now.(map[string]any); ok {
			return differMaps(at, r, n)
		}
	case []any:
		if n, ok := now.([]any); ok {
			for i := range min(len(r), len(n)) {
				if d := differ(fmt.Sprintf("%s[%d]", at, i), r[i], n[i]); d != "" {
					return d
				}
			}
			if len(r) != len(n) {
				return fmt.Sprintf("%s: had %d entries, now has %d", at, len(r), len(n))
			}
			return ""
		}
	}
	if reflect.DeepEqual(recorded, now) {
		return ""
	}
	was, isText := recorded.(string)
	is, areTexts := now.(string)
	if i := sameStart(was, is); isText && areTexts && i > 0 {
		return fmt.Sprintf("%s: from byte %d on, was %s, now is %s", at, i, shown(was[i:]), shown(is[i:]))
	}
	return fmt.Sprintf("%s: was %s, now is %s", at, shown(recorded), shown(now))
}

// sameStart returns the length in bytes of the common start of two texts, in whole characters. If it is long, the
// length is reduced a little, so that a reader recognises the place.
func sameStart(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return len(clip.Prefix(a, max(0, n-20)))
}

func differMaps(at string, recorded, now map[string]any) string {
	names := map[string]bool{}
	for _, m := range []map[string]any{recorded, now} {
		for name := range m {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		r, had := recorded[name]
		n, has := now[name]
		path := at + "." + name
		switch {
		case !has:
			return fmt.Sprintf("%s: was %s, now is missing", path, shown(r))
		case !had:
			return fmt.Sprintf("%s: was missing, now is %s", path, shown(n))
		}
		if d := differ(path, r, n); d != "" {
			return d
		}
	}
	return ""
}

// shown returns a value on one line, shortened if it is long.
func shown(v any) string {
	raw, err := strictjson.Marshal(v)
	if err != nil {
		return clip.Text(fmt.Sprint(v), 300)
	}
	return clip.Text(string(raw), 300)
}
