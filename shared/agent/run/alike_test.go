package run

import "testing"

// TestAlike compares arguments that people read alike, and arguments that differ.
func TestAlike(t *testing.T) {
	like := func(args string) string { return Effect{UID: "ana", Tool: "t", Args: []byte(args)}.likeness() }
	for name, c := range map[string]struct {
		a, b  string
		alike bool
	}{
		"ends":           {`{"s":"a b"}`, `{"s":" a b\n"}`, true},
		"line ends":      {`{"s":"a\nb"}`, `{"s":"a\r\n\t b"}`, true},
		"invisible":      {`{"s":["ab"]}`, "{\"s\":[\"a\u200bb\u00ad\"]}", true},
		"control":        {`{"s":"a b"}`, `{"s":"a\u0007b"}`, true},
		"accents":        {"{\"s\":\"\u00e9\"}", "{\"s\":\"e\u0301\"}", true},
		"instants":       {`{"s":"2026-12-30T01:00:00Z"}`, `{"s":"2026-12-30T02:00:00.000+01:00"}`, true},
		"other instants": {`{"s":"2026-12-30T01:00:00Z"}`, `{"s":"2026-12-30T01:00:00+01:00"}`, false},
		"zone of instants": {`{"start":"2026-12-30T01:00:00Z"}`,
			`{"start":"2026-12-30T02:00:00+01:00","timeZone":"Europe/Berlin"}`, true},
		"zone of clocks": {`{"start":"2026-12-30T01:00:00","timeZone":"UTC"}`,
			`{"start":"2026-12-30T01:00:00","timeZone":"Europe/Berlin"}`, false},
		"zone in a text":  {`{"s":"2026-12-30T01:00:00Z \"timeZone\":\"UTC\""}`, `{"s":"2026-12-30T01:00:00Z "}`, false},
		"order of a list": {`{"to":["a@b.c","b@b.c","c@b.c"]}`, `{"to":["c@b.c","a@b.c","b@b.c"]}`, true},
		"other list":      {`{"to":["a@b.c","b@b.c"]}`, `{"to":["a@b.c","b@b.cc"]}`, false},
		"list of numbers": {`{"to":[1,2]}`, `{"to":[2,1]}`, false},
		"end of a text":   {`{"a":"x[","b":"y"}`, `{"a":"x[","b":"z"}`, false},
		"case":            {`{"s":"a"}`, `{"s":"A"}`, true},
		"quotes":          {`{"s":"\"don't\""}`, `{"s":"“don’t”"}`, true},
		"dashes":          {`{"s":"a -b"}`, `{"s":"a –b"}`, true},
		"full width":      {`{"s":"Demo 1"}`, `{"s":"Ｄｅｍｏ　１"}`, true},
		"another word":    {`{"s":"don't"}`, `{"s":"do"}`, false},
		"another digit":   {`{"s":"1-2"}`, `{"s":"1-3"}`, false},
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
