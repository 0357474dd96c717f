package skill_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/skill"
)

// one returns a library with a skill x that has these lines of front matter and this text.
func one(t *testing.T, front, body string) *skill.Library {
	t.Helper()
	l, err := skill.Load(skill.FS(files(map[string]string{
		"x/SKILL.md": "---\nname: x\ndescription: Does x.\n" + front + "\n---\n" + body})))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestInvoked finds the invocation at the beginning of a prompt. Everything else is ordinary text.
func TestInvoked(t *testing.T) {
	l := one(t, "", "Do it.")
	for prompt, arguments := range map[string]string{"/x": "", "/x\n": "", " /x  a b ": "a b", "/x\na\nb": "a\nb",
		"/x /etc/hosts": "/etc/hosts", "/x é": "é"} {
		if i := l.Invoked(prompt); i == nil || i.Skill.Name != "x" || i.Arguments != arguments {
			t.Errorf("%q: %+v; want i set, i.Skill.Name “x”, i.Arguments %v", prompt, i, arguments)
		}
	}
	for _, prompt := range []string{"", "/", "x", "//x", "/ x", "/X", "/y a", "/x/y", "/x.go", "/x: a", "/x-y",
		"see /x", "/etc/hosts is empty", "/" + strings.Repeat("x", 70000), "/x\x00", "/x\u200b a"} {
		if i := l.Invoked(prompt); i != nil {
			t.Errorf("%.20q is words, not %+v", prompt, i)
		}
	}
	if one(t, "user-invocable: false", "").Invoked("/x") != nil {
		t.Error("a user invokes the model's skill")
	}
}

// TestSubstitute puts the arguments into the text.
func TestSubstitute(t *testing.T) {
	for body, c := range map[string]struct{ arguments, want string }{
		"Do it.":                             {"", "Do it."},
		"No placeholder.":                    {"a b", "No placeholder.\n\nARGUMENTS: a b"},
		"All: $ARGUMENTS.":                   {`a "b c"`, `All: a "b c".`},
		"None: $ARGUMENTS.":                  {"", "None: ."},
		"$1 and $2":                          {`"a b" 'c d'`, "a b and c d"},
		"$0 and $1":                          {"a b", "a and b"},
		"$ARGUMENTS[0] and $1":               {"a b", "a and b"},
		"$ARGUMENTS[1], $ARGUMENTS[999]":     {"a b", "b, $ARGUMENTS[999]"},
		"Missing: $2; $10 and $1":            {"a", "Missing: $2; $10 and a"},
		"It don't: $1 $2":                    {"don't do", "It don't: don't do"},
		"Not again: $1":                      {"$2 b", "Not again: $2"},
		`Kept: \$1 and $1`:                   {"a", "Kept: $1 and a"},
		"Named: $version, $other, $versions": {"1.2 b", "Named: 1.2, $other, $versions"},
		"Shell: $HOME ${1} $(date) !`date`":  {"a", "Shell: $HOME ${1} $(date) !`date`\n\nARGUMENTS: a"},
		"Not it: $ARGUMENTSX $arguments":     {"a", "Not it: $ARGUMENTSX $arguments\n\nARGUMENTS: a"},
		"Empty: [$1] [$2]":                   {`"" a`, "Empty: [] [a]"},
	} {
		i := one(t, "arguments: [version]", body).Invoked("/x " + c.arguments)
		got, err := i.Text()
		head := "The user has invoked the skill x for this request. It is guidance and stands below your instructions"
		if err != nil || !strings.HasPrefix(got, head) || !strings.HasSuffix(got, "\n\n"+c.want) {
			t.Errorf("%q: %v, %q", body, err, got)
		}
	}
}

// TestSubstituteLimit checks that a text that its arguments make too long is refused, with an error about the prompt.
func TestSubstituteLimit(t *testing.T) {
	for _, body := range []string{strings.Repeat("$ARGUMENTS", 6000), "x"} {
		i := one(t, "", body).Invoked("/x " + strings.Repeat("a", 256<<10))
		_, err := i.Text()
		var f *fault.Error
		if !errors.As(err, &f) || f.Class != fault.Validation || f.Field != "prompt" ||
			!strings.Contains(f.Message, "the limit of 65536 bytes") {
			t.Errorf("%v", err)
		}
	}
}

// TestInvocationKeys reads the keys for a skill's users and arguments, in the forms that public skills have.
func TestInvocationKeys(t *testing.T) {
	for front, want := range map[string]struct {
		user, model bool
		hint, names string
		warns       string
	}{
		"":                               {true, true, "", "", ""},
		"disable-model-invocation: true": {true, false, "", "", ""},
		"disable-model-invocation: false\nuser-invocable: true": {true, true, "", "", ""},
		"disable-model-invocation: yes":                         {true, false, "", "", ""},
		`disable-model-invocation: "true"`:                      {true, false, "", "", ""},
		"disable-model-invocation:":                             {true, true, "", "", ""},
		"disable-model-invocation: maybe":                       {true, false, "", "", "disable-model-invocation: t"},
		"disable-model-invocation: [true]":                      {true, false, "", "", "disable-model-invocation: t"},
		"user-invocable: false":                                 {false, true, "", "", ""},
		"user-invocable: 0.5":                                   {false, true, "", "", "user-invocable: true or false"},
		"disable-model-invocation: true\nuser-invocable: false": {false, false, "", "", "neither a user nor the model"},
		"argument-hint: <version>":                              {true, true, "<version>", "", ""},
		"argument-hint: [output.html]":                          {true, true, "[output.html]", "", ""},
		"argument-hint: [a, b c]":                               {true, true, "[a, b c]", "", ""},
		"argument-hint: [--init] [--verify]":                    {true, true, "[--init] [--verify]", "", "plain"},
		"argument-hint: [srs|all] <path>":                       {true, true, "[srs|all] <path>", "", "plain"},
		`argument-hint: "[URL, e.g. https://a.example]"`:        {true, true, "[URL, e.g. https://a.example]", "", ""},
		"argument-hint: {a: b}":                                 {true, true, "", "", "argument-hint: a text"},
		"argument-hint: [[a]]":                                  {true, true, "", "", "argument-hint: a text"},
		"argument-hint: 5":                                      {true, true, "5", "", ""},
		"arguments: [issue, branch]":                            {true, true, "", "issue branch", ""},
		"arguments: issue branch":                               {true, true, "", "issue branch", ""},
		"arguments: $issue, $branch":                            {true, true, "", "issue branch", ""},
		"arguments:\n  - name: area":                            {true, true, "", "", "arguments: a list of"},
		"arguments: [ARGUMENTS]":                                {true, true, "", "", "arguments: a list of"},
		"arguments: [a-b]":                                      {true, true, "", "", "arguments: a list of"},
		"arguments: " + strings.Repeat("a ", 30):                {true, true, "", "", "arguments: a list of"},
		"argument-hint: [" + strings.Repeat("a", 300) + "]":     {true, true, "", "", "argument-hint: 302 characters"},
	} {
		l := one(t, front, "")
		s := l.Skills()[0]
		if s.UserOnly == want.model || s.ModelOnly == want.user || s.ArgumentHint != want.hint ||
			strings.Join(s.Arguments, " ") != want.names {
			t.Errorf("%s: %+v", front, s)
		}
		said := errors.Join(l.Warnings()...)
		if (said == nil) != (want.warns == "") || said != nil && !strings.Contains(said.Error(), want.warns) {
			t.Errorf("%s: it warns %v", front, said)
		}
		told := l.Catalogue() != "" && len(l.Tools()) == 2
		if told != want.model || (len(l.Invocable()) == 1) != want.user || (l.Invoked("/x") != nil) != want.user {
			t.Errorf("%s: the model is told: %v; users can invoke: %v", front, told, l.Invoked("/x"))
		}
	}
}
