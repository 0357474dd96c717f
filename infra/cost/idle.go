package cost

import (
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/infra"
)

const monthSeconds = days * 86_400

// warm lists the functions that keep an instance in prod (terraform/prod.tfvars).
var warm = []string{"run", "stream", "chat"}

// idle returns the monthly cost of a deployment without users, by item. The sweep runs each minute.
func idle(functions map[string]infra.Function, domain bool, warm []string) []share {
	sweeps := float64(days * 24 * 60)
	sweep := functions["sweep"]
	on := sweeps * ownSeconds
	edge, policy, kept := 0.0, 0.0, 0.0
	if domain {
		edge, policy = days*24*rulePrice.dollar, policyPrice.dollar
	}
	for _, name := range warm {
		f := functions[name]
		kept += monthSeconds * (number(f.CPU) + gib(f.Memory)) * idlePrice.dollar
	}
	return []share{
		{"load balancer", edge},
		{"Cloud Armor", policy},
		{"warm instances", kept},
		{"the sweep", on*(number(sweep.CPU)*cpuPrice.dollar+gib(sweep.Memory)*memoryPrice.dollar) +
			sweeps*(callPrice.dollar+logLineBytes*copies*logPrice.dollar+sweepReads*readPrice.dollar)},
		{"the tokens' key and the secrets", keyVersions*versionPrice.dollar + secrets*secretPrice.dollar},
	}
}

func writeIdle(b *strings.Builder, functions map[string]infra.Function) {
	dev, stage, prod := idle(functions, false, nil), idle(functions, true, nil), idle(functions, true, warm)
	fmt.Fprintf(b, `
## What it costs without users

US dollars a month: dev without a domain, stage with a domain, and prod, which also keeps an instance of each of %s.

| | dev | stage | prod |
| --- | --- | --- | --- |
`, strings.Join(warm, ", "))
	sums := [3]float64{}
	for i := range dev {
		fmt.Fprintf(b, "| %s |", dev[i].what)
		for k, of := range [][]share{dev, stage, prod} {
			sums[k] += of[i].dollar
			fmt.Fprintf(b, " %s |", grouped(of[i].dollar))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(b, "| together | %s | %s | %s |\n", grouped(sums[0]), grouped(sums[1]), grouped(sums[2]))
}
