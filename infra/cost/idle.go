package cost

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/infra"
)

const monthSeconds = days * 86_400

// warm lists the functions that keep an instance in prod (terraform/prod.tfvars).
var warm = []string{"run", "stream", "chat"}

// optional are the secrets that only a setting needs (infra/functions.json).
var optional = []string{"gemini-api-key", "github-client-secret", "action-key", "mcp-secrets", "docker-certs",
	"webhook-keys", "vapid-key", "smtp-url", "otlp-headers", "receipt-key"}

// secretsOf returns the secrets that the functions need without any setting.
func secretsOf(l infra.List, functions []infra.Function) (names []string) {
	for _, f := range functions {
		for _, part := range f.Parts {
			for _, secret := range l.Parts[part].Secrets {
				if !slices.Contains(optional, secret) && !slices.Contains(names, secret) {
					names = append(names, secret)
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

// idle returns the monthly cost of a deployment of the functions without users, by item. The sweep runs each minute.
func idle(l infra.List, functions []infra.Function, domain bool, warm []string) []share {
	edge, policy, kept, sweep := 0.0, 0.0, 0.0, 0.0
	if domain {
		edge, policy = days*24*rulePrice.dollar, policyPrice.dollar
	}
	for _, f := range functions {
		if slices.Contains(warm, f.Name) {
			kept += monthSeconds * (number(f.CPU) + gib(f.Memory)) * idlePrice.dollar
		}
		if f.Name == "sweep" {
			sweeps := float64(days * 24 * 60)
			sweep = sweeps*ownSeconds*(number(f.CPU)*cpuPrice.dollar+gib(f.Memory)*memoryPrice.dollar) +
				sweeps*(callPrice.dollar+logLineBytes*keptLog+sweepReads*readPrice.dollar)
		}
	}
	return []share{
		{"load balancer", edge},
		{"Cloud Armor", policy},
		{"warm instances", kept},
		{"the sweep", sweep},
		{"the tokens' key and the secrets", keyVersions*versionPrice.dollar +
			float64(len(secretsOf(l, functions)))*secretPrice.dollar},
		{"images", float64(len(functions)) * imagesKept * imageBytes / 1e9 * imagePrice.dollar},
	}
}

// profiles are the choices of functions that the page compares.
var profiles = []string{"core", "page", "all"}

func writeIdle(b *strings.Builder, l infra.List) error {
	fmt.Fprintf(b, `
## What it costs without users

US dollars a month, by the functions that are deployed (`+"`functions`"+`): dev without a domain, stage with a domain, and prod, which also keeps an instance of
each of %s. Each function keeps %d images of %d MB. Google has announced a price for alerts; stored pages say $0.10 to $1.50 for a condition and month, and it is not included.

| |`, strings.Join(warm, ", "), imagesKept, int(imageBytes/1e6))
	var columns [][]share
	for _, profile := range profiles {
		functions, err := l.Select([]string{profile})
		if err != nil {
			return err
		}
		for _, environment := range []string{"dev", "stage", "prod"} {
			fmt.Fprintf(b, " %s, %s |", profile, environment)
			var kept []string
			if environment == "prod" {
				kept = warm
			}
			columns = append(columns, idle(l, functions, environment != "dev", kept))
		}
	}
	b.WriteString("\n|" + strings.Repeat(" --- |", len(columns)+1) + "\n")
	for i := range columns[0] {
		fmt.Fprintf(b, "| %s |", columns[0][i].what)
		for _, column := range columns {
			fmt.Fprintf(b, " %s |", grouped(column[i].dollar))
		}
		b.WriteString("\n")
	}
	b.WriteString("| together |")
	for _, column := range columns {
		fmt.Fprintf(b, " %s |", grouped(sum(column)))
	}
	b.WriteString("\n")
	return writeFirst(b, l)
}

// writeFirst writes the steps and times of the first deployment of each profile. The steps of a person are those that
// terraform/bootstrap prints.
func writeFirst(b *strings.Builder, l infra.List) error {
	fmt.Fprintf(b, `
## What the first deployment takes

A person takes %d steps, whatever is deployed: `+"`terraform -chdir=terraform/bootstrap output -raw left_to_do`"+` prints them. Step 5 adds one value for each of the secrets. `+
		"`terraform apply`"+` builds
%d functions at a time, each in about %d minutes (an assumption: nothing was deployed yet), and Google issues a certificate within the hour.

| `+"`functions`"+` | functions to build | minutes of builds | secrets |
| --- | --- | --- | --- |
`, firstSteps, buildsAtOnce, buildMinutes)
	for _, profile := range profiles {
		functions, err := l.Select([]string{profile})
		if err != nil {
			return err
		}
		rounds := (len(functions) + buildsAtOnce - 1) / buildsAtOnce
		fmt.Fprintf(b, "| %s | %d | %d | %s |\n", profile, len(functions), rounds*buildMinutes,
			strings.Join(secretsOf(l, functions), ", "))
	}
	return nil
}

// firstSteps is the number of steps in the output left_to_do of terraform/bootstrap.
const firstSteps = 8

// writeProfiles writes the cost of the users of each profile, and the quotas that they exceed.
func writeProfiles(b *strings.Builder, kinds []counts, functions map[string]infra.Function) {
	b.WriteString("\n## By profile\n\nUS dollars a month for a mix of runs, and the quotas that its busiest minute " +
		"exceeds. How to raise them is in [the table of quotas](#which-quota-is-exceeded-first).\n\n" +
		"| `functions` | assumed runs | | " + columns() + " |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, m := range mixes {
		var mix []mixed
		var runs []string
		for _, c := range kinds {
			if share := m.shares[c.Kind]; share > 0 {
				mix = append(mix, mixed{c, share})
				runs = append(runs, fmt.Sprintf("%v %% %s", share*100, c.Kind))
			}
		}
		name := map[string]string{"core": "core", "page": "page, all"}[m.profile]
		if m.consoles > 0 {
			runs = append(runs, fmt.Sprintf("a console open %v hours a day for every %v runs", openHours, 1/m.consoles))
		}
		fmt.Fprintf(b, "| %s | %s | cost |", name, strings.Join(runs, ", "))
		for _, n := range sizes {
			items := append(month(mix, functions, n), share{"consoles", sum(browsers(functions[pollFunction],
				m.consoles*n))})
			fmt.Fprintf(b, " %s |", withModel(items))
		}
		b.WriteString("\n| | | exceeded |")
		all := bounds(mix, functions)
		for _, n := range sizes {
			fmt.Fprintf(b, " %s |", met(withConsoles(all, m.consoles, functions[pollFunction]), n))
		}
		b.WriteString("\n")
	}
}

// withConsoles adds the number of runs a day at which the open consoles fill all instances of their function.
func withConsoles(all []bound, consoles float64, f infra.Function) []bound {
	if consoles == 0 {
		return all
	}
	all = append(slices.Clone(all), bound{quota{name: "instances of `" + f.Name + "`"},
		float64(f.MaxInstances*f.Concurrency) / consoles})
	slices.SortStableFunc(all, func(a, b bound) int { return cmp.Compare(a.runs, b.runs) })
	return all
}
