package collector

import (
	"fmt"
	"slices"
	"strings"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	v1 "go.opentelemetry.io/proto/otlp/metrics/v1"
)

// A Value is an instrument's measurement for one set of attributes: the sum of all received values, or a gauge's
// newest value.
type Value struct {
	Sum   float64
	Count uint64 // of a histogram
}

// Metrics returns the received metrics.
func (c *Collector) Metrics() []*v1.ResourceMetrics {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.metrics)
}

// Measured adds up the received metrics of all processes. Its keys are names such as "countersign.run.started
// gen_ai.agent.name=assistant".
func (c *Collector) Measured() map[string]Value {
	sums, last := map[string]Value{}, map[string]Value{} // the newest value, by process
	for _, r := range c.Metrics() {
		process := text(r.Resource.Attributes, "service.instance.id") + "\n"
		for _, s := range r.ScopeMetrics {
			for _, m := range s.Metrics {
				for _, p := range m.GetSum().GetDataPoints() {
					add(sums, last, process, series(m, p.Attributes), m.GetSum().AggregationTemporality,
						Value{Sum: float64(p.GetAsInt())})
				}
				for _, p := range m.GetHistogram().GetDataPoints() {
					add(sums, last, process, series(m, p.Attributes), m.GetHistogram().AggregationTemporality,
						Value{p.GetSum(), p.Count})
				}
				for _, p := range m.GetGauge().GetDataPoints() {
					sums[series(m, p.Attributes)] = Value{Sum: p.GetAsDouble()}
				}
			}
		}
	}
	for key, v := range last {
		_, name, _ := strings.Cut(key, "\n")
		sums[name] = Value{sums[name].Sum + v.Sum, sums[name].Count + v.Count}
	}
	return sums
}

func add(sums, last map[string]Value, process, name string, t v1.AggregationTemporality, v Value) {
	if t == v1.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE {
		last[process+name] = v
		return
	}
	sums[name] = Value{sums[name].Sum + v.Sum, sums[name].Count + v.Count}
}

func series(m *v1.Metric, attrs []*common.KeyValue) string {
	name := []string{m.Name}
	for _, a := range attrs {
		name = append(name, fmt.Sprintf("%s=%s", a.Key, a.Value.GetStringValue()))
	}
	slices.Sort(name[1:])
	return strings.Join(name, " ")
}

func text(attrs []*common.KeyValue, key string) string {
	for _, a := range attrs {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return ""
}
