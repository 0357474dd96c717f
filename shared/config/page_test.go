package config

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/infra"
	"github.com/countersign-run/countersign/shared/testkit/readme"
)

var update = flag.Bool("update", false, "write the tables of variables into README.md")

const begin, end = "<!-- variables, written by go test ./shared/config -update -->\n", "<!-- end of variables -->\n"

// TestPage compares README.md with the code. The meaning of each variable is its comment in Config, its values and
// default come from Load, and the functions that get it from infra/functions.json.
func TestPage(t *testing.T) {
	readme.Section(t, "README.md", begin, end, page(t), *update)
}

// described is a heading in Config's comments, with its variables.
type described struct {
	heading string
	names   []string
}

var (
	isHeading = regexp.MustCompile(`^[A-Z][^:]+\.$`)
	isMeaning = regexp.MustCompile(`^([A-Z][A-Z0-9_]+): ((?s).+)$`)
)

// comments returns the meaning of each variable, and their order, from the comments of Config.
func comments(t *testing.T) (sections []described, meanings map[string]string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "config.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var config ast.Node = file.Scope.Lookup("Config").Decl.(*ast.TypeSpec)
	meanings = map[string]string{}
	for _, group := range file.Comments {
		if group.Pos() < config.Pos() || group.End() > config.End() {
			continue
		}
		for paragraph := range strings.SplitSeq(strings.TrimSpace(group.Text()), "\n\n") {
			one := strings.Join(strings.Fields(paragraph), " ")
			if m := isMeaning.FindStringSubmatch(one); m != nil && meanings[m[1]] == "" {
				last := &sections[len(sections)-1]
				last.names, meanings[m[1]] = append(last.names, m[1]), m[2]
			} else if m != nil {
				t.Errorf("%s is described twice", m[1])
			} else if isHeading.MatchString(one) {
				sections = append(sections, described{heading: strings.TrimSuffix(one, ".")})
			}
		}
	}
	return sections, meanings
}

// read returns a loader that has read all variables for the parts.
func read(env map[string]string, parts ...Part) *loader {
	l := &loader{reader: reader{getenv: func(name string) string { return env[name] }}, parts: parts}
	l.load()
	return l
}

// cloudRun is the environment that Cloud Run sets.
var cloudRun = map[string]string{"K_SERVICE": "run", "CLOUD_RUN_TIMEOUT_SECONDS": "60"}

// page returns the README's tables.
func page(t *testing.T) string {
	sections, meanings := comments(t)
	here, deployed := read(nil), read(cloudRun)
	given, functions := uses(t)
	explain(t, deployed, given)
	var b strings.Builder
	seen := map[string]bool{}
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n\n%s", s.heading,
			"| variable | what it sets | its value | default | given to |\n| --- | --- | --- | --- | --- |\n")
		for _, name := range s.names {
			v, ok := deployed.find(name)
			if !ok {
				t.Errorf("Config describes %s, which Load does not read", name)
			}
			seen[name] = true
			local, _ := here.find(name)
			value := append([]string{v.needs}, deployed.refusals(name)...)
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", name, upper(meanings[name]),
				strings.ReplaceAll(strings.Join(value, "; "), "|", `\|`), defaults(v, local),
				strings.Join(given[name], ", "))
		}
	}
	for _, v := range deployed.declared {
		if !seen[v.name] {
			t.Errorf("Load reads %s, which no comment in Config describes", v.name)
		}
	}
	for name := range given {
		if !seen[name] {
			t.Errorf("%v gives %s, which Load does not read", given[name], name)
		}
	}
	b.WriteString("\n## Refused\n\n")
	byReason := map[string][]string{}
	var reasons []string
	for _, p := range deployed.refused {
		if seen[p.Variable] {
			continue
		}
		if byReason[p.Needs] == nil {
			reasons = append(reasons, p.Needs)
		}
		byReason[p.Needs] = append(byReason[p.Needs], p.Variable)
	}
	for _, reason := range reasons {
		fmt.Fprintf(&b, "- %s need %s.\n", strings.Join(byReason[reason], ", "), reason)
	}
	b.WriteString("\n## Parts\n\n| part | the functions that have it |\n| --- | --- |\n")
	return b.String() + functions + "\n"
}

// leftOut says why Terraform gives a variable to no function, though a deployed function reads it. Variables that a
// deployed function refuses are left out too.
var leftOut = map[string]string{
	"K_SERVICE":                           "set by Cloud Run",
	"CLOUD_RUN_TIMEOUT_SECONDS":           "set by Cloud Run",
	"STORE":                               "left out: the default is right",
	"QUEUE":                               "left out: the default is right",
	"OTEL_EXPORTER_OTLP_PROTOCOL":         "left out: it has one value",
	"OTEL_SDK_DISABLED":                   "left out: `traces` and `metrics` decide",
	"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "left out: one collector gets both",
	"OTEL_EXPORTER_OTLP_METRICS_HEADERS":  "left out: one collector gets both",
	"GEMINI_CONFIG":                       "left out: `scripts/package -with` adds the default file",
	"DATABASE_URL":                        "left out: it is not read",
	"DATA_DIR":                            "left out: a function has no disk",
	"DOCKER_CERT_PATH":                    "left out: DOCKER_CERTS replaces it",
	"GOOGLE_GEMINI_BASE_URL":              otherServer,
	"VERTEX_AI_ENDPOINT":                  otherServer,
	"GOOGLE_OAUTH_AUTH_URL":               otherServer,
	"GOOGLE_OAUTH_TOKEN_URL":              otherServer,
	"GMAIL_API_ENDPOINT":                  otherServer,
	"CALENDAR_API_ENDPOINT":               otherServer,
}

const otherServer = "left out: Google's server is right"

// explain adds why Terraform gives a variable to no function. Every variable is given, refused, or left out knowingly.
func explain(t *testing.T, deployed *loader, given map[string][]string) {
	t.Helper()
	for name := range leftOut {
		if _, read := deployed.find(name); !read || len(given[name]) > 0 {
			t.Errorf("leftOut names %s, which Load does not read or %v is given", name, given[name])
		}
	}
	for _, v := range deployed.declared {
		switch {
		case len(given[v.name]) > 0:
		case leftOut[v.name] != "":
			given[v.name] = []string{leftOut[v.name]}
		case slices.ContainsFunc(deployed.refusals(v.name), isForLocal.MatchString):
			given[v.name] = []string{"left out: refused where deployed"}
		default:
			t.Errorf("Load reads %s, which Terraform gives to no function: add it to a part in infra/functions.json, "+
				"to the module's settings, or to leftOut with the reason", v.name)
		}
	}
}

var isForLocal = regexp.MustCompile(`^to be unset where K_SERVICE is set`)

// direct finds the variables that Terraform sets from a separate variable of the module, for all functions.
var direct = regexp.MustCompile(`\{ ([A-Z_]+) += [^\n]*?\bvar\.([a-z_]+)`)

// directly returns the variables that Terraform gives to all functions by a variable of its own.
func directly(t *testing.T) map[string]string {
	t.Helper()
	from := map[string]string{}
	for _, file := range []string{"agent/functions.tf", "function/main.tf"} {
		text, err := os.ReadFile("../../terraform/modules/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range direct.FindAllStringSubmatch(string(text), -1) {
			from[m[1]] = "`" + m[2] + "`"
		}
	}
	return from
}

func (r *reader) find(name string) (variable, bool) {
	i := slices.IndexFunc(r.declared, func(v variable) bool { return v.name == name })
	if i < 0 {
		return variable{}, false
	}
	return r.declared[i], true
}

// refusals returns why the variable must not be set in this environment.
func (r *reader) refusals(name string) (reasons []string) {
	for _, p := range r.refused {
		if p.Variable == name {
			reasons = append(reasons, p.Needs)
		}
	}
	return reasons
}

func defaults(deployed, local variable) string {
	switch {
	case deployed.secret:
		return "none; secret"
	case deployed.def == local.def || local.name == "":
		return deployed.def
	}
	return cmp.Or(local.def, "none") + "; on Cloud Run " + deployed.def
}

// uses returns the parts that get each variable, with those that need it in bold, and a table of the parts' functions.
func uses(t *testing.T) (given map[string][]string, functions string) {
	t.Helper()
	list, err := infra.Functions()
	if err != nil {
		t.Fatal(err)
	}
	given = map[string][]string{}
	parts := map[string][]string{}
	for _, f := range list.Functions {
		for _, p := range f.Parts {
			parts[p] = append(parts[p], f.Name)
		}
	}
	for _, name := range sorted(list.Parts) {
		p := list.Parts[name]
		missing := required(name)
		variables := slices.Concat(p.Environment, sorted(p.Secrets), missing)
		slices.Sort(variables)
		for _, v := range slices.Compact(variables) {
			shown := name
			if slices.Contains(missing, v) {
				shown = "**" + name + "**"
			}
			given[v] = append(given[v], shown)
		}
		if len(variables) > 0 {
			functions += "| " + name + " | " +
				cmp.Or(strings.Join(parts[name], ", "), "none, unless Terraform puts it in the place of another") +
				" |\n"
		}
	}
	for _, v := range settings(t) {
		given[v] = append(given[v], "`settings`")
	}
	for v, variable := range directly(t) {
		given[v] = append(given[v], variable)
	}
	return given, functions
}

var isSetting = regexp.MustCompile(`"([A-Z_]+)"`)

// settings returns the variables that Terraform gives to all functions.
func settings(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile("../../terraform/modules/agent/variables_policy.tf")
	if err != nil {
		t.Fatal(err)
	}
	_, variable, _ := strings.Cut(string(text), `variable "settings" {`)
	_, list, _ := strings.Cut(variable, "contains([")
	list, _, found := strings.Cut(list, "]")
	if !found {
		t.Fatal("Terraform's settings have no list of variables")
	}
	for _, m := range isSetting.FindAllStringSubmatch(list, -1) {
		names = append(names, m[1])
	}
	return names
}

// required returns the variables that a function with the part needs to start on Cloud Run.
func required(part string) (names []string) {
	if part == "reading" {
		part = string(Store)
	}
	for _, p := range read(cloudRun, Part(part)).problems {
		if p.Holds == "" {
			names = append(names, p.Variable)
		}
	}
	return names
}

func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
