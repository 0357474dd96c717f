package mcpfile

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// An entry is one server in the file.
type entry struct {
	name, at string
	line     int
	out      bool // another part of the file disables it
	raw      jsontext.Value
}

// fields are the fields of an entry, under the names that different clients use. The first of several names is ours.
type fields struct {
	Type          text      `json:"type"`
	Transport     transport `json:"transport"`
	TransportType text      `json:"transportType"`

	URL       text    `json:"url"`
	HTTPURL   text    `json:"httpUrl"`
	ServerURL text    `json:"serverUrl,case:ignore"` // also serverURL, server_url
	URI       text    `json:"uri"`
	Endpoint  text    `json:"endpoint"`
	BaseURL   text    `json:"baseUrl"`
	Headers   pairs   `json:"headers"`
	Request   request `json:"requestOptions"`
	Init      request `json:"requestInit"`
	Token     text    `json:"authorization_token"`

	Command     program `json:"command"`
	Cmd         program `json:"cmd"`
	Args        []text  `json:"args"`
	Env         pairs   `json:"env"`
	Environment pairs   `json:"environment"`
	Envs        pairs   `json:"envs"`
	Dir         text    `json:"cwd"`
	WorkingDir  text    `json:"workingDirectory"`

	ReadOnly []string `json:"readOnly"`
	Only     []string `json:"only"`
	Deny     []string `json:"deny"`
	Approval string   `json:"approval"`
	Named    bool     `json:"named"`

	// Fields that exclude a server are respected, whichever client they belong to. For those that exclude tools, see
	// restrict.
	Disabled bool  `json:"disabled"`
	Enabled  *bool `json:"enabled"`

	// Codex
	Bearer     string          `json:"bearer_token_env_var"`
	HTTPHeader map[string]text `json:"http_headers"`
	EnvHeader  map[string]text `json:"env_http_headers"`

	Rest map[string]jsontext.Value `json:",embed"`
}

// request holds the headers of requests.
type request struct {
	Headers pairs `json:"headers"`
}

// server returns the server, or nil if the file disables it.
func (e entry) server(notes unused) (*Server, error) {
	var f fields
	if err := strictjson.DecodeKnown(e.raw, &f); err != nil {
		return nil, e.within(err)
	}
	if e.out || f.Disabled || f.Enabled != nil && !*f.Enabled {
		return nil, nil
	}
	s := &Server{Name: nameOf(e.name), At: e.at, Line: e.line}
	if s.Name == "" {
		return nil, fault.Invalid(e.at, "must be a letter and up to 31 letters, digits and hyphens")
	}
	for key := range f.Rest {
		for _, own := range []string{"readOnly", "only", "deny", "approval", "named"} {
			if strings.EqualFold(key, own) {
				return nil, fault.Invalid(e.at+"/"+key, "%s was expected", own)
			}
		}
	}
	f.into(s)
	for _, key := range slices.Sorted(maps.Keys(f.Rest)) {
		taken, err := s.restrict(key, f.Rest[key])
		if err != nil {
			return nil, fault.Invalid(e.at+"/"+key, "%s", err)
		}
		if taken {
			delete(f.Rest, key)
		}
	}
	idle := append(s.dropIdle(), slices.Sorted(maps.Keys(f.Rest))...)
	if err := s.check(); err != nil {
		return nil, err
	}
	notes.add(e.name, idle)
	return s, nil
}

// dropIdle removes fields that the server's transport does not use, and returns their names.
func (s *Server) dropIdle() (fields []string) {
	for name := range s.Headers {
		if lower := strings.ToLower(name); s.Type == Stdio || lower == "content-type" || lower == "accept" {
			fields = append(fields, "headers/"+name)
			delete(s.Headers, name)
		}
	}
	if s.Type == HTTP && len(s.Env) > 0 {
		fields, s.Env = append(fields, "env"), nil
	}
	if s.Type == HTTP && s.Dir != "" {
		fields, s.Dir = append(fields, "cwd"), ""
	}
	slices.Sort(fields)
	return fields
}

// within returns the error with the entry's path before its field.
func (e entry) within(err error) error {
	f := fault.As(err)
	return fault.Invalid(strings.TrimSuffix(e.at+"/"+f.Field, "/"), "%s", f.Message)
}

// into copies the fields to the server.
func (f fields) into(s *Server) {
	f.Transport.over(&f)
	s.URL = strings.TrimSpace(string(cmp.Or(f.URL, f.HTTPURL, f.ServerURL, f.URI, f.Endpoint, f.BaseURL)))
	if f.HTTPURL != "" { // next to httpUrl, url is the address of an older transport
		s.URL = string(f.HTTPURL)
	}
	s.Headers = texts(f.bearer(), f.HTTPHeader, f.Request.Headers, f.Init.Headers, f.Headers)
	if f.Command.Path == "" {
		f.Command = f.Cmd
	}
	s.Command, s.Args = f.Command.Path, slices.Concat(f.Command.Args, plain(f.Args))
	words := strings.Fields(s.Command)
	if len(words) > 1 && len(s.Args) == 0 && !strings.ContainsAny(words[0], `/\"'`) { // arguments in the same text
		s.Command, s.Args = words[0], words[1:]
	}
	s.Env = texts(f.Command.Env, f.Environment, f.Envs, f.Env)
	s.Dir = string(cmp.Or(f.Dir, f.WorkingDir))
	s.Type = transportOf(string(cmp.Or(f.Type, f.Transport.Type, f.TransportType)), s.Command != "", s.URL != "")
	s.ReadOnly, s.Only, s.Deny, s.Approval, s.Named = f.ReadOnly, f.Only, f.Deny, f.Approval, f.Named
}

// bearer returns the headers whose values Codex takes from variables, and the one of a token.
func (f fields) bearer() map[string]text {
	all := map[string]text{}
	if f.Token != "" {
		all["Authorization"] = "Bearer " + f.Token
	}
	for name, variable := range f.EnvHeader {
		all[name] = "${" + variable + "}"
	}
	if f.Bearer != "" {
		all["Authorization"] = text("Bearer ${" + f.Bearer + "}")
	}
	return all
}

// transportOf returns the transport that a client's word stands for. A word such as npm, uvx or docker says how a
// program was installed.
func transportOf(word string, program, address bool) string {
	switch strings.ToLower(strings.NewReplacer("-", "", "_", "", "+", "", " ", "").Replace(word)) {
	case "":
		if program {
			return Stdio
		}
		return HTTP
	case "http", "https", "streamable", "streamablehttp", "httpstream", "remote", "url", "sse", "httpsse":
		return HTTP
	case "stdio", "local", "command":
		return Stdio
	}
	if program && !address && strings.Trim(word, letters) == "" {
		return Stdio
	}
	return word
}

// nameOf returns the server's name, or "" if nothing of the entry's name is usable. It takes the last part of a path
// such as github.com/owner/server, and replaces each run of other characters with a hyphen. From a name that is too
// long, it first drops everything before the last full stop.
func nameOf(name string) string {
	name = path.Base(name)
	if len(name) > maxName {
		name = name[strings.LastIndexByte(name, '.')+1:]
	}
	words := strings.FieldsFunc(name, func(r rune) bool {
		return !strings.ContainsRune(letters+"0123456789", r)
	})
	short := strings.TrimLeft(strings.Join(words, "-"), "0123456789-")
	return strings.TrimRight(short[:min(len(short), maxName)], "-")
}
