// Package cost calculates the cost of runs at three sizes: the usage of each kind of run (counts.json, which a test of
// shared/app counts and checks) times list prices. It also reports which quota is exceeded first. README.md is its
// output, and a test compares the two.
package cost

import (
	"cmp"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/infra"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

//go:embed counts.json
var countsJSON []byte

const mail = "a mail that waits for its user"

// counts is the usage of one run of a kind.
type counts struct {
	Kind        string       `json:"kind"`
	Invocations []invocation `json:"invocations"`
	Reads       int          `json:"reads"`
	Writes      int          `json:"writes"`
	Messages    int          `json:"messages"`
	LogLines    int          `json:"logLines"`
}

type invocation struct {
	Function   string `json:"function"`
	ModelCalls int    `json:"modelCalls"`
	Effects    int    `json:"effects"`
}

func (c counts) modelCalls() (n int) {
	for _, i := range c.Invocations {
		n += i.ModelCalls
	}
	return n
}

// seconds returns the duration of an invocation.
func (i invocation) seconds() float64 {
	return ownSeconds + modelSeconds*float64(i.ModelCalls) + effectSeconds*float64(i.Effects)
}

// share is an item of the cost of runs.
type share struct {
	what   string
	dollar float64 // a month
}

// month returns the monthly cost of the given number of runs a day, by item.
func month(c counts, functions map[string]infra.Function, runs float64) []share {
	n := runs * days
	cpu, memory := 0.0, 0.0
	for _, i := range c.Invocations {
		f := functions[i.Function]
		on := days * instanceSeconds(runs*i.seconds()/86_400, filled*float64(f.Concurrency))
		cpu += on * number(f.CPU)
		memory += on * gib(f.Memory)
	}
	calls, public, keyUses := float64(len(c.Invocations)), 0.0, 0.0
	for _, i := range c.Invocations {
		if functions[i.Function].Public() {
			public++
		}
		keyUses += float64(i.Effects) // each decrypts a user's token
		if i.Function == "approvals-resolve" {
			keyUses++ // it signs the decision
		}
	}
	accesses := float64(c.Reads + c.Writes) // at most: a query or a commit of several documents is one access
	asked := float64(c.modelCalls())
	return []share{
		{"documents written", n * float64(c.Writes) * writePrice.dollar},
		{"documents read", n * float64(c.Reads) * readPrice.dollar},
		{"functions", cpu*cpuPrice.dollar + memory*memoryPrice.dollar + n*calls*callPrice.dollar},
		{"messages", n * float64(c.Messages) * messagePrice.dollar},
		{"log", n * float64(c.LogLines) * logLineBytes * copies * logPrice.dollar},
		{"log of accesses to data", n * accesses * accessBytes * copies * logPrice.dollar},
		{"load balancer and its log", n * public * (requestBytes*edgePrice.dollar + edgeLineBytes*logPrice.dollar)},
		{"Cloud Armor", n * public * armorPrice.dollar},
		{"Cloud KMS", n * keyUses * kmsPrice.dollar},
		{"the model", n * asked * (tokensIn*tokenPrice.dollar + tokensOut*answerPrice.dollar)},
	}
}

// instanceSeconds returns the paid seconds of instances in a day, for an average number of concurrent requests. With
// few requests, an instance is paid for while it has a request: the share of time in which a Poisson number is not
// zero. With many, as many instances are paid for as the requests fill.
func instanceSeconds(atOnce, place float64) float64 {
	return 86_400 * max(1-math.Exp(-atOnce), atOnce/place)
}

func number(s string) float64 {
	n, _ := strconv.ParseFloat(s, 64) // infra.Functions has checked it
	return n
}

func gib(memory string) float64 {
	if n, ok := strings.CutSuffix(memory, "Mi"); ok {
		return number(n) / 1024
	}
	return number(strings.TrimSuffix(memory, "Gi"))
}

// bound is the number of runs a day of a kind at which a quota is exceeded in the busiest minute.
type bound struct {
	quota
	runs float64
}

// bounds returns the bounds of a kind, the lowest first.
func bounds(c counts, functions map[string]infra.Function) (all []bound) {
	for _, q := range quotas {
		if takes := q.takes(c); takes > 0 {
			busiest := peak
			if q.per == 86_400 {
				busiest = 1
			}
			all = append(all, bound{q, q.limit / takes * 86_400 / q.per / busiest})
		}
	}
	for _, i := range c.Invocations {
		f := functions[i.Function]
		atOnce := float64(f.MaxInstances * f.Concurrency)
		all = append(all, bound{quota{name: "instances of `" + f.Name + "`", limit: float64(f.MaxInstances), per: 1,
			source: fmt.Sprintf("infra/functions.json: %d instances with %d requests each", f.MaxInstances,
				f.Concurrency),
			answer: "`maxInstances` in infra/functions.json; beyond it Cloud Run answers 429"},
			atOnce / i.seconds() * 86_400 / peak})
	}
	slices.SortStableFunc(all, func(a, b bound) int { return cmp.Compare(a.runs, b.runs) })
	return all
}

var sizes = []float64{10_000, 1_000_000, 10_000_000}

// Paper returns the text of README.md.
func Paper() (string, error) {
	list, err := infra.Functions()
	if err != nil {
		return "", err
	}
	functions := map[string]infra.Function{}
	for _, f := range list.Functions {
		functions[f.Name] = f
	}
	var counted struct {
		Runs []counts `json:"runs"`
	}
	if err := strictjson.Decode(countsJSON, &counted); err != nil {
		return "", err
	}
	kinds := counted.Runs
	var b strings.Builder
	b.WriteString(head)
	writeCounts(&b, kinds)
	writePrices(&b)
	b.WriteString(afterPrices())
	writeMonths(&b, kinds, functions)
	writeIdle(&b, functions)
	writeFiles(&b)
	writeBounds(&b, kinds, functions)
	writeBrowsers(&b, functions)
	return b.String(), nil
}

const head = `# What it costs, on paper

` + "`go test ./infra/cost -update`" + ` writes this page from the counts of a test (` + "`go test ./shared/app -run CountsOfRun`" + `), the prices and
assumptions in [inputs.go](inputs.go), and [functions.json](../functions.json). A test compares them: if you change the usage of a run, update this page.

## What a run takes

The billed documents, messages and log lines of one run, from the user's prompt to the end, with a linked account. Polls (` + "`Prefer: wait`" + `) and
[open consoles](#what-open-consoles-take) are not included.

`

func writeCounts(b *strings.Builder, kinds []counts) {
	b.WriteString("| a run | functions called | documents read | written | messages | lines of log | calls of " +
		"the model |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, c := range kinds {
		var names []string
		for _, i := range c.Invocations {
			names = append(names, "`"+i.Function+"`")
		}
		fmt.Fprintf(b, "| %s | %s | %d | %d | %d | %d | %d |\n", c.Kind, strings.Join(names, ", "), c.Reads, c.Writes,
			c.Messages, c.LogLines, c.modelCalls())
	}
}

func writePrices(b *strings.Builder) {
	fmt.Fprintf(b, "\n## Prices\n\nRead on %s, in US dollars, without free tiers. Network and storage are those of "+
		"uploaded files.\n\n", day)
	b.WriteString("| for | list price | page |\n| --- | --- | --- |\n")
	for _, p := range prices {
		fmt.Fprintf(b, "| %s | %s | %s |\n", p.name, p.list, p.source)
	}
}

func afterPrices() string {
	return fmt.Sprintf(`
Assumptions: a model call takes %v s, %d tokens of input and %d of output. An effect takes %v s, and the rest of a request %v s. A request has %d bytes of log
(our line and the platform's). An instance is paid for while it has a request. Under load, an instance is filled to half of its concurrency.
The busiest minute of a day has %v times the average. The cost of stored documents is not included.

Each access to a document is counted as one entry of Google's audit of %d bytes; a query or a commit of several documents is one access, so this is the most that it
can be. That audit and the lines of functions are stored twice: in the audit's bucket, and in `+"`_Default`"+`. A request through the load balancer has %d bytes with its
answer, and a line of log of %d bytes. Each effect decrypts one token with Cloud KMS, and each approval
is one signature, if decisions are signed.

## The cost of a month

US dollars a month, by runs a day, if all runs are of one kind. The part for the model is in brackets.

`, modelSeconds, tokensIn, tokensOut, effectSeconds, ownSeconds, logLineBytes, peak, accessBytes,
		requestBytes, edgeLineBytes)
}

func writeMonths(b *strings.Builder, kinds []counts, functions map[string]infra.Function) {
	b.WriteString("| a run |")
	for _, n := range sizes {
		fmt.Fprintf(b, " %s a day |", grouped(n))
	}
	b.WriteString("\n| --- | --- | --- | --- |\n")
	for _, c := range kinds {
		fmt.Fprintf(b, "| %s |", c.Kind)
		for _, n := range sizes {
			total, model := 0.0, 0.0
			for _, s := range month(c, functions, n) {
				total += s.dollar
				if s.what == "the model" {
					model = s.dollar
				}
			}
			fmt.Fprintf(b, " %s (%s) |", grouped(total), grouped(model))
		}
		b.WriteString("\n")
	}
	b.WriteString("\nThe cost of mails by item:\n\n| | " + columns() + " |\n| --- | --- | --- | --- |\n")
	c := kinds[slices.IndexFunc(kinds, func(c counts) bool { return c.Kind == mail })]
	for i, s := range month(c, functions, 0) {
		fmt.Fprintf(b, "| %s |", s.what)
		for _, n := range sizes {
			fmt.Fprintf(b, " %s |", grouped(month(c, functions, n)[i].dollar))
		}
		b.WriteString("\n")
	}
}

// columns returns the headings of the sizes.
func columns() string {
	var all []string
	for _, n := range sizes {
		all = append(all, grouped(n)+" a day")
	}
	return strings.Join(all, " | ")
}

func writeBounds(b *strings.Builder, kinds []counts, functions map[string]infra.Function) {
	b.WriteString(`
## Which quota is exceeded first

The default quotas that are exceeded in the busiest minute of a day, if all runs are of one kind. Requests beyond a quota are retried later, or
refused with 429 and ` + "`Retry-After`" + `. No work is lost.

| a run | ` + columns() + ` |
| --- | --- | --- | --- |
`)
	for _, c := range kinds {
		fmt.Fprintf(b, "| %s |", c.Kind)
		all := bounds(c, functions)
		for _, n := range sizes {
			if all[0].runs >= n {
				b.WriteString(" none |")
				continue
			}
			var met []string
			for _, q := range all {
				if q.runs < n {
					met = append(met, q.name)
				}
			}
			fmt.Fprintf(b, " %s |", strings.Join(met, ", then "))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n| quota | exceeded at this many runs a day | how to raise it | source |\n" +
		"| --- | --- | --- | --- |\n")
	written := map[string]bool{}
	for _, c := range []counts{kinds[slices.IndexFunc(kinds, func(c counts) bool { return c.Kind == mail })],
		kinds[0]} {
		for _, q := range bounds(c, functions) {
			if !written[q.name] {
				fmt.Fprintf(b, "| %s | %s of %s | %s | %s |\n", q.name, grouped(q.runs), c.Kind, q.answer, q.source)
			}
			written[q.name] = true
		}
	}
}

// grouped returns a number with two digits that count, or as a whole, with commas between thousands.
func grouped(f float64) string {
	if f < 100 {
		if f != 0 && f < 10 {
			return strconv.FormatFloat(f, 'f', 2, 64)
		}
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	s := strconv.FormatFloat(f, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
