// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

// helmTemplateCommand prints what a chart becomes: what `helm template` does, by Helm's own loader,
// schema check and engine. The rest of Helm would double what there is to compile.
func helmTemplateCommand() *cobra.Command {
	release := common.ReleaseOptions{IsInstall: true, Revision: 1}
	var values string
	command := &cobra.Command{
		Use:           "helm-template NAME CHART",
		Args:          cobra.ExactArgs(2),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(_ *cobra.Command, arguments []string) error {
			release.Name = arguments[0]
			return render(arguments[1], values, release)
		},
	}
	command.Flags().StringVarP(&values, "values", "f", "", "YAML file over the chart's own values")
	command.Flags().StringVarP(&release.Namespace, "namespace", "n", "default", "of the release")
	return command
}

func render(folder, valuesFile string, release common.ReleaseOptions) error {
	chart, err := loader.Load(folder)
	if err != nil {
		return err
	}
	given := map[string]any{}
	if valuesFile != "" {
		file, err := os.Open(valuesFile)
		if err != nil {
			return err
		}
		defer file.Close()
		if given, err = loader.LoadValues(file); err != nil {
			return err
		}
	}
	values, err := util.ToRenderValues(chart, given, release, nil)
	if err != nil {
		return err
	}
	files, err := engine.Render(chart, values)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(files[name]) != "" {
			fmt.Printf("---\n# Source: %s\n%s\n", name, files[name])
		}
	}
	return nil
}
