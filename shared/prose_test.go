package shared_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// oddWords are patterns of inverted or riddling English, each with the plain form and the number of places that still
// have it. The numbers only go down.
var oddWords = []struct {
	pattern, instead string
	left             int
}{
	{`\b(is|are|was|were|be|been) told\b`, "data is passed, sent or reported", 2},
	{`\bbe (it|they)\b`, "name the condition", 0},
	{`\b(of|by|to|from|for) whom\b`, "name the person first", 6},
	{`\bof which\b`, "begin a sentence of its own", 1},
	{`\bby which\b`, "name the means first", 0},
	{`\bof whose\b`, "begin with the owner", 0},
	{`\bwhoever\b`, "name the user, caller or process", 0},
	{`\b(stands?|stood) (in|there|at|twice|before|behind|beside)\b`, "is in, is duplicated, follows", 0},
	{`\bnobody\b`, "no user, no process", 1},
	{`\banew\b`, "again", 1},
	{`\btheirs\b`, "name the thing", 0},
	{`\bwhat (is|are|was|were) `, "name the thing", 55},
	{`\b(may|can) not go on\b`, "must end", 0},
	{`\b(put|puts|set) aside\b`, "quarantined", 0},
	{`\bshut out\b`, "disabled", 0},
	{`\bcarried out\b`, "runs, is executed", 1},
	{`\b(is|are|was|were) held to\b`, "must satisfy", 0},
	{`\b(nothing|none) of (it|them|that|this)\b`, "name the things", 8},
	{`\bare the most\b`, "the limit is", 0},
	{`\bbeside (it|them|that)\b`, "name the neighbor", 5},
	{`\bany more\b`, "no longer", 1},
	{`\b(goes|went) on\b`, "continues", 0},
	{`\banswered [1-5][0-9][0-9]\b`, "gets 404", 0},
	{`\bsmall letters\b`, "lower-case letters", 0},
	{`\b(is|are|was|were|been|be|not|never) begun\b`, "started", 1},
	{`\bsome [0-9]`, "about 40", 5},
	{`(^|[^-\w.$])((a|answered|forwarded) mail|mails)\b`, "e-mail", 34},
	{`\b(has|have|had|lets?) (the|a|an|its|their|his|every|each|another) [a-z]+ be\b`, "makes the call run", 1},
	{`\bmend(s|ed)?\b`, "fix", 4},
	{`\bfor ever\b`, "never expires", 2},
	{`\bpassed over\b`, "ignored, skipped", 0},
	{`\bgone on with\b`, "continued", 0},
	{`\bso many (days|bytes|minutes|characters|files|calls|times)\b`, "the given number of", 0},
	{`\b(is|are|was|were) to be [a-z]+ed\b`, "must be", 1},
}

var question = regexp.MustCompile(`[^.!?:;]*\?`)

// TestPlainEnglish counts the patterns of oddWords in comments of Go, in messages and on pages. Code in a page and
// questions do not count.
func TestPlainEnglish(t *testing.T) {
	found := make([][]string, len(oddWords))
	odd := make([]*regexp.Regexp, len(oddWords))
	for i, o := range oddWords {
		odd[i] = regexp.MustCompile(`(?i)` + o.pattern)
	}
	check := func(at, text string) {
		text = question.ReplaceAllString(text, "")
		for i, pattern := range odd {
			if words := pattern.FindString(text); words != "" {
				found[i] = append(found[i], at+": "+words)
			}
		}
	}
	read := readProse(t, check)
	if read < 1000 {
		t.Fatalf("%d files", read)
	}
	for i, o := range oddWords {
		if len(found[i]) != o.left {
			t.Errorf("%q is in %d places, and oddWords has %d; write instead: %s\n%s", o.pattern, len(found[i]), o.left,
				o.instead, strings.Join(found[i], "\n"))
		}
	}
}

// readProse calls check with each sentence of the module's comments, messages and pages, and returns the number of
// files.
func readProse(t *testing.T, check func(at, text string)) (read int) {
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() == ".git"):
			return fs.SkipDir
		case filepath.Ext(path) == ".go" && d.Name() != "prose_test.go":
			read++
			return sentencesOf(path, check)
		case filepath.Ext(path) == ".md":
			read++
			return paragraphsOf(path, check)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// sentencesOf calls check with each comment of a file of Go and with each literal of at least four words.
func sentencesOf(path string, check func(at, text string)) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, comment := range file.Comments {
		check(fset.Position(comment.Pos()).String(), strings.Join(strings.Fields(comment.Text()), " "))
	}
	if strings.HasSuffix(path, "_test.go") { // a test quotes others
		return nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && strings.Count(l.Value, " ") > 2 {
			text, _ := strconv.Unquote(l.Value)
			check(fset.Position(l.Pos()).String(), strings.Join(strings.Fields(text), " "))
		}
		return true
	})
	return nil
}

var codeBlock = regexp.MustCompile("(?s)```.*?```|`[^`]*`")

// paragraphsOf calls check with each paragraph of a page, without its code.
func paragraphsOf(path string, check func(at, text string)) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text := codeBlock.ReplaceAllStringFunc(string(page), func(code string) string {
		return strings.Repeat("\n", strings.Count(code, "\n"))
	})
	line := 1
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		check(path+":"+strconv.Itoa(line), strings.Join(strings.Fields(paragraph), " "))
		line += strings.Count(paragraph, "\n") + 2
	}
	return nil
}
