package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

const program = "go run ./scripts/ops"

// examples are the arguments of a command as you would type them.
var examples = map[string][]string{
	"setup":        {""},
	"verify":       {"", "-run iyxanc32cjl7jxpvuqoyov6qxm", "-checkpoint checkpoint"},
	"checkpoint":   {"save checkpoint"},
	"dead-letters": {"list", "replay -run iyxanc32cjl7jxpvuqoyov6qxm", "replay -yes"},
	"waiting":      {"", "-oldest 50"},
	"hindsight":    {"-policy try.env -since 2026-11-01T00:00:00Z", "-policy try.env -tool gmail_send -v", "-propose"},
	"redrive":      {"iyxanc32cjl7jxpvuqoyov6qxm"},
	"story":        {"iyxanc32cjl7jxpvuqoyov6qxm", "iyxanc32cjl7jxpvuqoyov6qxm -json"},
	"revoke":       {"ana", "ana -yes"},
	"restore":      {"-since 2026-11-29T09:30:00Z", ""},
	"enable":       {"ana", "ana -yes"},
	"delete-user":  {"ana", "ana -yes"},
	"passkey":      {"code ana", "list ana", "remove ana -id ID"},
	"export":       {"ana"},
	"audit":        {"export", "export -out november -from 2026-11-01 -to 2026-11-30"},
	"action-key":   {"submitRating"},
	"rotate":       {"chat-key", "token-key -retire"},
	"receipt-keys": {""},
	"receipt":      {"verify receipt.json", "verify receipt.json -keys jwks.json"},
	"traffic":      {"hold", "move -step 1 -percent 10", "back"},
	"loadtest":     {`https://countersign.example.com -token "$TOKEN1,$TOKEN2" -runs 1000 -at-once 50`},
	"smoke":        {`https://countersign.example.com -token "$TOKEN"`},
}

// usage prints the list of commands.
func usage(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: %s COMMAND\n\n", program)
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		c := commands[name]
		fmt.Fprintf(&b, "  %-30s  %s\n", strings.TrimSpace(name+" "+c.args), c.short)
	}
	b.WriteString("\nCOMMAND -h prints its flags.\n")
	_, err := io.WriteString(out, b.String())
	return err
}

// usage prints a command's description, arguments, flags and examples.
func (c command) usage(out io.Writer, name string, flags *flag.FlagSet) error {
	var b strings.Builder
	line := strings.Join(strings.Fields(program+" "+name+" "+c.args), " ")
	if hasFlags(flags) {
		line += " [flags]"
	}
	fmt.Fprintf(&b, "usage: %s\n\n%s\n", line, c.short)
	if hasFlags(flags) {
		b.WriteString("\n")
		flags.SetOutput(&b)
		flags.PrintDefaults()
	}
	fmt.Fprintf(&b, "\nexamples:\n")
	for _, example := range examples[name] {
		fmt.Fprintf(&b, "  %s\n", strings.TrimSpace(program+" "+name+" "+example))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// takes describes the accepted arguments and flags, for error messages.
func (c command) takes(flags *flag.FlagSet) string {
	switch {
	case c.args != "" && hasFlags(flags):
		return "only " + c.args + " and flags"
	case c.args != "":
		return "only " + c.args
	case hasFlags(flags):
		return "only flags"
	}
	return "no arguments"
}

func hasFlags(flags *flag.FlagSet) (has bool) {
	flags.VisitAll(func(*flag.Flag) { has = true })
	return has
}
