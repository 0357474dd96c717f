package run

import "testing"

// TestAlike compares arguments that people read alike, and arguments that differ.
func TestAlike(t *testing.T) {
	like := func(args string) string { return Effect{UID: "ana", Tool: "t", Args: []byte(args)}.likeness() }
	for name, c := range map[string]struct {
		a, b  string
		alike bool
	}{
		"ends":            {`{"s":"a b"}`, `{"s":" a b\n"}`, true},
		"line ends":       {`{"s":"a\nb"}`, `{"s":"a\r\n\t b"}`, true},
		"invisible":       {`{"s":["ab"]}`, "{\"s\":[\"a\u200bb\u00ad\"]}", true},
		"control":         {`{"s":"a b"}`, `{"s":"a\u0007b"}`, true},
		"accents":         {"{\"s\":\"\u00e9\"}", "{\"s\":\"e\u0301\"}", true},
		"instants":        {`{"s":"2026-12-30T01:00:00Z"}`, `{"s":"2026-12-30T02:00:00.000+01:00"}`, true},
		"other instants":  {`{"s":"2026-12-30T01:00:00Z"}`, `{"s":"2026-12-30T01:00:00+01:00"}`, false},
		"case":            {`{"s":"a"}`, `{"s":"A"}`, false},
		"joined words":    {`{"s":"a b"}`, `{"s":"ab"}`, false},
		"a quote":         {`{"s":"a\" b"}`, `{"s":"a b"}`, false},
		"a backslash":     {`{"s":"a\\n"}`, `{"s":"a\n"}`, false},
		"another text":    {`{"a":"x ","b":"y"}`, `{"a":"x","b":" y"}`, true},
		"moved":           {`{"a":"x","b":""}`, `{"a":"","b":"x"}`, false},
		"a number":        {`{"a":1}`, `{"a":"1"}`, false},
		"not whole":       {`{"a":"x`, `{"a":"x\`, false},
		"nothing visible": {`{"a":""}`, "{\"a\":\" \u200b\"}", true},
	} {
		if got := like(c.a) == like(c.b); got != c.alike {
			t.Errorf("%s: alike %t", name, got)
		}
	}
}
