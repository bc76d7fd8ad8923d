"""Are the number of clusters and of outliers chosen right?"""
